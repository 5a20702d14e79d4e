// Shrinks the schedule of a batch that failed in the simulator, and prints the decisions that remain. Thread safety:
// none.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>

#include "engine/base/status.hpp"
#include "engine/sim/shrink.hpp"

namespace kilokv::engine {

inline constexpr std::uint64_t kShrinkRunsMax = 3000;

// run(schedule, &report): runs the test for that batch under this schedule. It returns the result, and sets the report
// of the batch's run. A failure without progress counts only if the first failure is one too.
inline ShrunkSchedule shrink_batch(Schedule failing, const std::function<Status(const Schedule&, RunReport*)>& run) {
  const auto is_endless = [](const Status& status) {
    return status.message().find("no progress") != std::string::npos;
  };
  RunReport report, ignored;
  failing.records_decisions = true;
  const bool may_be_endless = is_endless(run(failing, &report));
  const auto fails = [&](const Schedule& schedule) {
    const Status status = run(schedule, &ignored);
    return !status.ok() && (may_be_endless || !is_endless(status));
  };
  ShrunkSchedule shrunk = shrink(failing, report.decisions, fails, kShrinkRunsMax);
  std::printf("  %zu decisions in the schedule, shrunk in %llu runs to %zu: %s\n  then: %s\n", report.decisions.size(),
              static_cast<unsigned long long>(shrunk.runs), shrunk.schedule.decisions.size(), shrunk.text().c_str(),
              run(shrunk.schedule, &ignored).message().c_str());
  return shrunk;
}

}  // namespace kilokv::engine
