#include "engine/exec/run/stage_times.hpp"

namespace kilokv::engine {

const char* to_string(BatchStage stage) {
  constexpr std::array<const char*, kStages> kNames = {"resolve", "pack", "run", "unpack", "collect", "settle", "hash"};
  return kNames[static_cast<std::size_t>(stage)];
}

void StageTimes::add(const StageTimes& other) {
  for (std::size_t i = 0; i < kStages; ++i) times_[i].add(other.times_[i]);
}

StageTime StageTimes::sum() const {
  StageTime sum;
  for (const StageTime& time : times_) sum.add(time);
  return sum;
}

double StageTimes::serial_share() const {
  const StageTime all = sum();
  return all.all == 0 ? 0 : all.alone / all.all;
}

}  // namespace kilokv::engine
