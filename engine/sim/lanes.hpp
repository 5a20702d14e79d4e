// The simulator's machine: a whole grid of threads ("lanes") on one thread, each a fiber. Every access to shared memory
// is a step, and a seeded schedule says who goes next. The same schedule and body give the same run: a failure is
// replayed by its seed, or by the decisions of which it consists (schedule.hpp); shrink.hpp finds the few that matter.
//
// A run ends
//   - well, when every lane's body has returned;
//   - with an error, when it takes more than steps_max steps (no progress), when lanes wait that nobody can release (a
//     barrier that not all reach), or when two accesses race (race_detector.hpp).
// After an error lanes are left where they are and forgotten: bodies hold only locals that need no destructor.
//
// Memory is sequentially consistent, unless the schedule has a stale_probability: then loads also read older values, as
// far as the program's orders and fences let them (weak_memory.hpp). What a weaker order would break shows as a race,
// where plain data hang on it, and as a wrong value in weak memory, where they are contended words.
// In lockstep, lanes of a group take turns step by step, also where they diverge: one that holds a lock goes on while
// its neighbours spin, as on devices with independent thread scheduling.
//
// Thread safety: one thread an object. Lanes keep their stacks between runs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/sim/fiber.hpp"
#include "engine/sim/lane_mask.hpp"
#include "engine/sim/race_detector.hpp"
#include "engine/sim/schedule.hpp"
#include "engine/sim/scheduler.hpp"
#include "engine/sim/weak_memory.hpp"

namespace kilokv::engine {

// At what lanes wait for each other.
enum class Meeting : std::uint8_t { group_barrier, block_barrier, grid_barrier, ballot, match, broadcast, sum };

class Lanes {
 public:
  static constexpr std::uint32_t kLanesMax = 64;
  static constexpr std::uint32_t kSharedWords = 64;

  // At most kLanesMax lanes; nothing of the shape is 0.
  explicit Lanes(const GridShape& shape);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  const GridShape& shape() const { return shape_; }
  // Runs body(lane) on every lane. The body must not throw.
  RunReport run(const Schedule& schedule, const std::function<void(std::uint32_t)>& body);

  // For the lane that runs, in a body.

  // Precedes each access to shared memory: others may go first.
  void step();
  void pause();  // a step at which a lane that spins lets others go first
  // Until all lanes of the group, block or grid are there. Barriers order memory, the others do not.
  void meet(Meeting meeting);
  // The same, and every lane gives a word; then given() tells those of its group, until it meets with words again.
  void meet_with(Meeting meeting, std::uint64_t word);
  std::uint64_t given(std::uint32_t group_lane) const;
  std::uint32_t group_size() const;  // lanes in the group of the lane that runs
  // What it does to a word or datum behind its step. `now` is in memory, the newest value; a load returns what it
  // reads. The caller writes `value` there.
  std::uint64_t load(const void* word, std::uint64_t now, Order order);
  void load_newest(const void* word, std::uint64_t now, Order order);
  void store(const void* word, std::uint64_t now, std::uint64_t value, Order order);
  void change(const void* word, std::uint64_t now, std::uint64_t value, Order order);
  void fence(Order order);
  void get(const void* datum);
  void put(const void* datum, std::uint64_t value);

  std::uint64_t steps() const { return report_.steps; }  // of all lanes
  void probe(std::uint32_t number) { ++report_.probes[number]; }
  std::uint64_t* shared(std::uint32_t block) { return &shared_words_[std::size_t{block} * kSharedWords]; }

 private:
  static constexpr std::size_t kMeetings = static_cast<std::size_t>(Meeting::sum) + 1;

  void start(const Schedule& schedule);
  void work(std::uint32_t lane);
  void finish();
  void fail();
  std::string error_text() const;
  void go_to(std::uint32_t lane);
  void add_to_trace(std::uint32_t choice);
  LaneMask members(Meeting meeting) const;
  bool release_if_complete(Meeting meeting);
  std::string describe_waiting() const;

  const GridShape shape_;
  const LaneMask all_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<LaneMask> group_, block_;  // those with whom a lane shares it
  std::vector<std::uint32_t> group_begin_;
  Scheduler scheduler_;
  RaceDetector races_;
  WeakMemory weak_memory_;
  std::vector<std::uint64_t> shared_words_;

  // Of the run.
  const std::function<void(std::uint32_t)>* body_ = nullptr;
  Fiber* caller_ = nullptr;
  std::uint64_t steps_max_ = 0;
  bool is_weak_ = false;
  RunReport report_;
  std::uint32_t current_ = 0;
  LaneMask runnable_ = 0, finished_ = 0;
  std::array<LaneMask, kMeetings> waiting_{};
  // Words given at meetings: by turns in two rows, for a lane may come to the next meeting before all have read this.
  std::array<std::array<std::uint64_t, kLanesMax>, 2> given_{};
  std::array<std::uint64_t, kLanesMax> meetings_with_{};
};

}  // namespace kilokv::engine
