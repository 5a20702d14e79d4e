// The simulator's machine: a whole grid of threads ("lanes") on one thread. Each lane is a fiber. Every access to
// shared memory is a step. A seeded schedule decides which lane goes next. The same schedule and body give the same
// run. So a failure can be replayed by its seed, or by its decisions (schedule.hpp). shrink.hpp finds the few decisions
// that matter.
//
// A run ends
//   - well, when every lane's body has returned;
//   - with an error, when it takes more than steps_max steps (no progress), when lanes wait and no lane can release
//     them (a barrier that not all reach), or when two accesses race (race_detector.hpp).
// After an error, lanes are left where they are and forgotten. Therefore bodies hold only locals that need no
// destructor.
//
// Memory is sequentially consistent, unless the schedule has a stale_probability. Then loads also read older values, as
// far as the program's orders and fences allow (weak_memory.hpp). If an order is too weak, the run shows it: as a race
// if plain data depend on it, and as a wrong value in weak memory if contended words do.
//
// In lockstep, the lanes of a group take turns step by step, even if they diverge. A lane that holds a lock continues
// while its neighbours spin, as on devices with independent thread scheduling.
//
// Thread safety: one thread for each object. Lanes keep their stacks between runs.
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

// What lanes wait for each other at.
enum class Meeting : std::uint8_t { group_barrier, block_barrier, grid_barrier, ballot, match, broadcast, sum };

class Lanes {
 public:
  static constexpr std::uint32_t kLanesMax = 64;
  static constexpr std::uint32_t kSharedWords = 64;

  // At most kLanesMax lanes. No number of the shape is 0.
  explicit Lanes(const GridShape& shape);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  const GridShape& shape() const { return shape_; }
  // Runs body(lane) on every lane, under the schedule. The body must not throw.
  RunReport run(const Schedule& schedule, const std::function<void(std::uint32_t)>& body);

  // The functions below are for the running lane, in a body.

  // Called before each access to shared memory: other lanes may go first.
  void step();
  void pause();  // a step at which a lane that spins lets other lanes run first
  // Waits until all lanes of the group, block or grid are there. Barriers order memory; the other meetings do not.
  void meet(Meeting meeting);
  // As meet(), and every lane gives a word. After that, given() returns the words of its group, until the lane next
  // meets with words.
  void meet_with(Meeting meeting, std::uint64_t word);
  std::uint64_t given(std::uint32_t group_lane) const;
  std::uint32_t group_size() const;  // lanes in the group of the running lane
  // What the running lane does to a word or datum, after its step. `now` is the newest value, which is in memory. A
  // load returns the value that it reads. The caller writes `value` to memory.
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
  std::vector<LaneMask> group_, block_;  // the lanes with which a lane shares it
  std::vector<std::uint32_t> group_begin_;
  Scheduler scheduler_;
  RaceDetector races_;
  WeakMemory weak_memory_;
  std::vector<std::uint64_t> shared_words_;

  // State of the current run.
  const std::function<void(std::uint32_t)>* body_ = nullptr;
  Fiber* caller_ = nullptr;
  std::uint64_t steps_max_ = 0;
  bool is_weak_ = false;
  RunReport report_;
  std::uint32_t current_ = 0;
  LaneMask runnable_ = 0, finished_ = 0;
  std::array<LaneMask, kMeetings> waiting_{};
  // Words given at meetings, in two rows by turns, because a lane may reach the next meeting before all have read
  // these.
  std::array<std::array<std::uint64_t, kLanesMax>, 2> given_{};
  std::array<std::uint64_t, kLanesMax> meetings_with_{};
};

}  // namespace kilokv::engine
