// Shared parts of the tests of the simulator: schedules of each kind, and runs that must end well or with an error.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/sim/lanes.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {

using Kind = Schedule::Kind;
using Body = std::function<void(std::uint32_t)>;

inline constexpr std::array<Kind, 3> kKinds = {Kind::sequential, Kind::interleaved, Kind::lockstep};
inline constexpr Order kRelaxed = Order::relaxed;
inline constexpr Scope kDevice = Scope::device;

inline Schedule schedule_of(Kind kind, std::uint64_t seed, std::uint64_t steps_max = 100'000) {
  return {.kind = kind, .seed = seed, .preempt_probability = 0.25, .steps_max = steps_max};
}

inline std::string show_run(Kind kind, std::uint64_t seed, const RunReport& report) {
  return "a run of kind " + std::to_string(static_cast<int>(kind)) + " and seed " + std::to_string(seed) +
         " to be right; it is not: " + report.status.message();
}

inline void expect_ok(Lanes* lanes, Kind kind, std::uint64_t seed, const Body& body) {
  const RunReport report = lanes->run(schedule_of(kind, seed), body);
  if (!report.status.ok()) FAIL(show_run(kind, seed, report));
}

// Runs the body under this many seeds. Returns how many runs end with an error that has `text` in it.
inline std::uint64_t count_errors(Lanes* lanes, Kind kind, std::uint64_t seeds, const std::string& text,
                                  const Body& body) {
  std::uint64_t errors = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RunReport report = lanes->run(schedule_of(kind, seed), body);
    if (report.status.message().find(text) != std::string::npos) ++errors;
  }
  return errors;
}

}  // namespace kilokv::engine
