// The simulator's machine: a whole grid of threads ("lanes") on one thread, each a fiber. Every access to shared memory
// is a step, and a seeded schedule says who goes next. The same schedule and body give the same run: a failure is
// replayed by its seed.
//
// A run ends
//   - well, when every lane's body has returned;
//   - with an error, when it takes more than steps_max steps (no progress), when lanes wait that nobody can release (a
//     barrier that not all reach), or when two accesses race (race_detector.hpp).
// After an error lanes are left where they are and forgotten: bodies hold only locals that need no destructor.
//
// What is simulated is sequentially consistent; what a weaker order would break shows as a race, where data hang on it.
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

#include "engine/base/status.hpp"
#include "engine/platform/concept.hpp"
#include "engine/platform/fiber.hpp"
#include "engine/platform/race_detector.hpp"

namespace kilokv::engine {

struct Schedule {
  enum class Kind : std::uint8_t {
    sequential,   // a lane runs until it waits; then the first that can
    interleaved,  // before each step another lane comes with preempt_probability, any that can run
    lockstep,     // the lanes of a group that can run make a step each, in order; then a group at random
  };
  Kind kind = Kind::interleaved;
  std::uint64_t seed = 0;
  double preempt_probability = 0.25;
  std::uint64_t steps_max = 1'000'000;
};

struct RunReport {
  Status status;                                // INTERNAL, with text, where the run ended with an error
  std::uint64_t steps = 0;                      // of all lanes
  std::uint64_t preemptions = 0;                // a lane that could have gone on had to let another go first
  std::uint64_t trace = 0;                      // digest of the lanes chosen, step by step: other traces, other digests
  std::array<std::uint64_t, kProbes> probes{};  // times that each was reached
};

struct GridShape {
  std::uint32_t blocks = 1;
  std::uint32_t block_threads = 1;
  std::uint32_t group_width = 1;  // a block's last group may have fewer lanes

  std::uint32_t lanes() const { return blocks * block_threads; }
  std::uint32_t block_groups() const { return (block_threads + group_width - 1) / group_width; }
};

// At what lanes wait for each other.
enum class Meeting : std::uint8_t { group_barrier, block_barrier, grid_barrier, ballot, match, broadcast };

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
  // Until all lanes of the group, block or grid are there. Barriers order memory, the others do not.
  void meet(Meeting meeting);
  // The same, and every lane gives a word; then given() tells those of its group, until it meets with words again.
  void meet_with(Meeting meeting, std::uint64_t word);
  std::uint64_t given(std::uint32_t group_lane) const;
  std::uint32_t group_size() const;  // lanes in the group of the lane that runs
  RaceDetector& races() { return races_; }
  void probe(std::uint32_t number) { ++report_.probes[number]; }
  std::uint64_t* shared(std::uint32_t block) { return &shared_words_[std::size_t{block} * kSharedWords]; }

 private:
  static constexpr std::size_t kMeetings = 6;
  using Mask = std::uint64_t;  // lanes, a bit each

  void start(const Schedule& schedule);
  void work(std::uint32_t lane);
  void finish();
  void fail();
  std::string error_text() const;
  void go_to(std::uint32_t lane);
  void record_choice(std::uint32_t lane);
  Mask members(Meeting meeting) const;
  bool release_if_complete(Meeting meeting);

  std::uint64_t random();
  std::uint32_t random_lane(Mask among);
  std::uint32_t next_after_step();
  std::uint32_t next_after_meeting();
  std::uint32_t next_after_leave();
  std::uint32_t start_round();
  std::uint32_t next_in_round();
  std::string describe_waiting() const;

  const GridShape shape_;
  const Mask all_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Mask> group_, block_;  // those with whom a lane shares it
  std::vector<std::uint32_t> group_begin_;
  RaceDetector races_;
  std::vector<std::uint64_t> shared_words_;

  // Of the run.
  const std::function<void(std::uint32_t)>* body_ = nullptr;
  Fiber* caller_ = nullptr;
  Schedule schedule_;
  RunReport report_;
  std::uint64_t random_state_ = 0;
  std::uint64_t preempt_below_ = 0;  // of 2^64
  std::uint32_t current_ = 0;
  Mask runnable_ = 0, finished_ = 0;
  std::array<Mask, kMeetings> waiting_{};
  // Words given at meetings: by turns in two rows, for a lane may come to the next meeting before all have read this.
  std::array<std::array<std::uint64_t, kLanesMax>, 2> given_{};
  std::array<std::uint64_t, kLanesMax> meetings_with_{};
};

}  // namespace kilokv::engine
