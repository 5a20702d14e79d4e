// Where the time of a batch goes: for each stage, the wall time, the processor time, and the wall time in which only
// one thread works. Engine::execute() measures it if EngineOptions::measure_stages asks for it.
//
// Only the thread that calls execute() uses this class. It adds what other threads have used (add_helpers()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kilokv::engine {

// In the order in which a batch passes them.
enum class BatchStage : std::uint8_t {
  resolve,  // puts the batch in order, and finds its keys; makes records for new keys, and blobs for byte values
  pack,     // brings the batch into the form in which the strategy needs it
  run,      // the strategy; on a device: all calls of the device, with the time that the host waits
  unpack,   // brings the results of the strategy into the form in which callers get them, and the cells into the table
  collect,  // the columns of the log record
  settle,   // counts, dirty marks, references to byte values, new records that were not written
  hash,     // the change of the state hash
};
inline constexpr std::size_t kStages = 7;
const char* to_string(BatchStage stage);
template <class F>
void for_each_stage(const F& f) {
  for (std::size_t i = 0; i < kStages; ++i) f(static_cast<BatchStage>(i));
}

// In seconds.
struct StageTime {
  double wall = 0;   // of the thread that called execute()
  double all = 0;    // processor time of all threads
  double alone = 0;  // the part of `wall` in which only one thread worked; at least this much if threads take turns

  void add(const StageTime& other) {
    wall += other.wall;
    all += other.all;
    alone += other.alone;
  }
};

class StageTimes {
 public:
  const StageTime& of(BatchStage stage) const { return times_[static_cast<std::size_t>(stage)]; }
  void add(BatchStage stage, const StageTime& time) { times_[static_cast<std::size_t>(stage)].add(time); }
  // Takes away what does not belong to the stage.
  void subtract(BatchStage stage, const StageTime& time) { add(stage, {-time.wall, -time.all, -time.alone}); }
  // Adds the times of another batch.
  void add(const StageTimes& other);
  StageTime sum() const;
  // The wall time in which only one thread works, divided by the processor time of all threads. 0: nothing was
  // measured.
  double serial_share() const;

 private:
  std::array<StageTime, kStages> times_{};
};

}  // namespace kilokv::engine
