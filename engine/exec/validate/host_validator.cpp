#include "engine/exec/validate/host_validator.hpp"

#include <algorithm>

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kBlockMin = 512, kBlockMax = 4096;  // checks for one thread
constexpr std::uint32_t kBlocksWanted = 16;  // for each thread in a read set, at least, unless blocks become too small

// All threads of the team except thread 0, as a grid.
class BackPlatform : public HostPlatform {
 public:
  BackPlatform(ThreadTeam* team, std::uint32_t thread, std::barrier<>* meeting)
      : HostPlatform(team, thread - 1, nullptr), team_size_(team->size()), meeting_(meeting) {}
  std::uint32_t threads() const { return team_size_ - 1; }
  void grid_barrier() const {
    if (team_size_ > 2) meeting_->arrive_and_wait();
  }

 private:
  std::uint32_t team_size_;
  std::barrier<>* meeting_;
};
static_assert(Platform<BackPlatform>);

// The front's source of blocks. The threads read the read set in place, so that nothing is copied.
struct InPlace {
  const ReadSet& set;
  std::uint32_t first_stale(std::uint32_t begin, std::uint32_t end) const { return set.first_stale(begin, end); }
  static std::uint64_t stage(std::uint32_t, std::uint32_t begin, std::uint32_t) { return begin; }
  static constexpr bool waits() { return true; }
};

}  // namespace

HostValidator::HostValidator(std::uint32_t threads) : team_(threads), entries_(std::size_t{kSlots} * kRingEntryWords) {
  words_[kRingCut] = kNoCut;
  meeting_.emplace(static_cast<std::ptrdiff_t>(std::max(team_.size(), 2u) - 1));
}

ValidatorResult HostValidator::run(const ReadSet& set) {
  ValidatorArguments<HostSpace> a;
  a.ring = {words_.data(), entries_.data(), kSlots};
  a.position = position_;
  a.grid = grid_.data();
  const std::uint32_t back = team_.size() - 1;
  const std::uint32_t block = std::clamp(set.size() / (kBlocksWanted * (back + 1)), kBlockMin, kBlockMax);
  ValidatorResult result;
  team_.run([&](std::uint32_t thread) {
    if (thread > 0) {
      BackPlatform platform(&team_, thread, &*meeting_);
      ValidatorBack<BackPlatform, ReadSetCheck>(platform, a, ReadSetCheck(set)).serve();
      return;
    }
    HostPlatform platform(&team_, 0, nullptr);
    InPlace source{set};
    ValidatorFront<HostPlatform, InPlace> front(platform, a.ring, position_,
                                                {.block = block * back, .front_block = block}, &source);
    result = front.run(set.size());
    front.end();
    position_ = front.position();
  });
  return result;
}

}  // namespace kilokv::engine
