#include "engine/exec/validate/cooperative_validator.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <vector>

namespace kilokv::engine {
namespace {

constexpr std::array<std::uint32_t, 5> kSizes = {1024, 4096, 16384, 65536, 262144};
constexpr std::size_t kRounds = 5;             // of each size; their median counts
constexpr double kGainMin = 1.05;              // two sides are used only if they are this much faster
constexpr std::size_t kGrowth = 4;             // a table is measured again when it is this many times larger
constexpr std::uint64_t kStride = 2654435761;  // spreads the sample over the table

// Records of the table, as a read set in which no read is stale.
struct Sample {
  Sample(const RecordTable& table, std::uint32_t size) {
    ids.reserve(size);
    versions.reserve(size);
    for (std::uint64_t at = 0; ids.size() < size; ++at) {
      auto slot = static_cast<std::uint32_t>(at * kStride % table.end_slot());
      while (!table.occupied(slot)) slot = slot + 1 == table.end_slot() ? 0 : slot + 1;
      ids.push_back(table[slot].id);
      versions.push_back(static_cast<std::int64_t>(version_of(table[slot].cell.tag)));
    }
  }
  ReadSet first(const RecordTable& table, std::uint32_t size) const {
    return {table, std::span(ids).first(size), std::span(versions).first(size)};
  }
  std::vector<KeyId> ids;
  std::vector<std::int64_t> versions;
};

template <class F>
double seconds_of(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median_of(std::array<double, kRounds> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

}  // namespace

bool CooperativeValidator::find_other_side(const Executor* executor) {
  if (executor != nullptr && executor->device() != nullptr) return true;
  if (threads_wanted_ <= 1) return false;
  if (host_ == nullptr) host_ = std::make_unique<HostValidator>(threads_wanted_);
  return host_->threads() > 1;
}

CooperativeValidator::Answer CooperativeValidator::validate(const RecordStore& store, const ReadSet& set,
                                                            Executor* executor) {
  const bool on_device = executor != nullptr && executor->device() != nullptr;
  has_other_side_ = kind_ != Validation::alone && find_other_side(executor);
  Answer answer;
  last_reads_ = set.size();
  unmeasured_reads_ += set.size();
  if (has_other_side_ && kind_ == Validation::automatic && store.table().size() > 0 &&
      (on_device != on_device_ || is_due(store.table().size()))) {
    on_device_ = on_device;
    answer.device = measure(store, executor);
  }
  last_together_ = false;  // after the measurement, which sets it for its own read sets
  if (has_other_side_ && answer.device.ok() && (kind_ == Validation::cooperative || set.size() >= threshold_)) {
    answer = validate_together(store, set, executor);
    if (last_together_) return answer;
  }
  answer.first_stale = set.first_stale(0, set.size());
  answer.beside = 0;
  return answer;
}

// Sets last_together_. False: the device failed or did not answer, so that nothing is known.
CooperativeValidator::Answer CooperativeValidator::validate_together(const RecordStore& store, const ReadSet& set,
                                                                     Executor* executor) {
  Answer answer;
  ValidatorResult result;
  if (executor != nullptr && executor->device() != nullptr) {
    answer.device = executor->validate(store, set, lanes_, &result);
    last_together_ = answer.device.ok() && result.is_complete;
    with_ = "with the device";
  } else {
    result = host_->run(set);
    last_together_ = true;
    with_ = "on " + std::to_string(host_->threads()) + " threads";
  }
  answer.first_stale = result.first_stale;
  answer.beside = set.size() - result.own;
  // A device is not trusted. The caller relies on the answer, so check here that this read is really stale.
  if (!last_together_ || result.first_stale == kAllValid) return answer;
  if (result.first_stale >= set.size() ||
      set.first_stale(result.first_stale, result.first_stale + 1) != result.first_stale) {
    answer.device = Status(StatusCode::internal, "the device reported a read as stale that is not stale");
    last_together_ = false;
  }
  return answer;
}

// Whether to measure again. The machine may have been busy during the last measurement, so it is repeated. The number
// of reads between two measurements keeps their cost at one or two hundredths of the time.
bool CooperativeValidator::is_due(std::size_t records) const {
  constexpr std::uint64_t kReads = 2 * kRounds * std::accumulate(kSizes.begin(), kSizes.end(), std::uint64_t{0});
  return measured_records_ == 0 || records / kGrowth >= measured_records_ ||
         unmeasured_reads_ >= measure_share_ * kReads;
}

Status CooperativeValidator::measure(const RecordStore& store, Executor* executor) {
  const RecordTable& table = store.table();
  measured_records_ = table.size();
  unmeasured_reads_ = 0;
  ++measurements_;
  threshold_ = kNever;
  gain_ = 0;
  const Sample sample(table, kSizes.back());
  bool wins_above = true;
  for (std::size_t i = kSizes.size(); i-- > 0;) {
    const ReadSet set = sample.first(table, kSizes[i]);
    std::array<double, kRounds> alone{}, together{};
    Status status;
    for (std::size_t round = 0; round < kRounds; ++round) {
      alone[round] = seconds_of([&] { static_cast<void>(set.first_stale(0, set.size())); });
      together[round] = seconds_of([&] { status = validate_together(store, set, executor).device; });
      if (!status.ok() || !last_together_) return status;
    }
    const double gain = median_of(alone) / median_of(together);
    if (i + 1 == kSizes.size()) gain_ = gain;
    wins_above = wins_above && gain >= kGainMin;
    if (wins_above) threshold_ = kSizes[i];
  }
  return {};
}

std::string CooperativeValidator::choice() const {
  if (last_reads_ == 0) return {};
  const std::string text = std::to_string(last_reads_) + " reads " + (last_together_ ? with_ : "on one thread");
  const std::string why = reason();
  return why.empty() ? text : text + ": " + why;
}

std::string CooperativeValidator::reason() const {
  if (kind_ == Validation::alone || (kind_ == Validation::cooperative && last_together_)) return {};
  if (!has_other_side_) return "there is one thread, and no device";
  if (kind_ == Validation::cooperative) return "the device failed";
  if (measured_records_ == 0) return "the table is too small to measure two sides";
  if (gain_ == 0) return "the other side failed when two were measured";
  std::array<char, 32> gain{}, least{};
  static_cast<void>(std::snprintf(gain.data(), gain.size(), "%.2f", gain_));
  static_cast<void>(std::snprintf(least.data(), least.size(), "%.2f", kGainMin));
  return (threshold_ == kNever ? "two sides are used for no size"
                               : "two sides are used from " + std::to_string(threshold_) + " reads on") +
         " (they were " + gain.data() + " times as fast as one thread with " + std::to_string(kSizes.back()) +
         " reads; they must be at least " + least.data() + " times as fast)";
}

}  // namespace kilokv::engine
