#include "engine/sim/shrink.hpp"

#include <algorithm>

namespace kilokv::engine {
namespace {

constexpr std::size_t kNear = 4;

std::string to_text(const Decision& decision) {
  const std::string step = "step " + std::to_string(decision.step) + " of lane " + std::to_string(decision.lane);
  const std::string value = std::to_string(decision.value);
  switch (decision.kind) {
    case Decision::Kind::lane:
      if (decision.step != 0 && decision.value == decision.lane) return "after " + step + " it goes on";
      return decision.step == 0 ? "lane " + value + " begins" : "after " + step + " lane " + value + " runs";
    case Decision::Kind::age:
      return step + " reads " +
             (decision.value == 1 ? "the value before the newest" : "the value " + value + " before the newest");
  }
  return "?";
}

// The decisions without the `count` decisions that start at `begin`.
std::vector<Decision> without(const std::vector<Decision>& decisions, std::size_t begin, std::size_t count) {
  std::vector<Decision> left(decisions.begin(), decisions.begin() + static_cast<std::ptrdiff_t>(begin));
  left.insert(left.end(), decisions.begin() + static_cast<std::ptrdiff_t>(begin + count), decisions.end());
  return left;
}

class Shrinker {
 public:
  Shrinker(ShrunkSchedule* shrunk, const std::function<bool(const Schedule&)>& fails, std::uint64_t runs_max)
      : shrunk_(*shrunk), fails_(fails), runs_max_(runs_max) {}

  // Keeps these decisions if the run fails with them.
  bool take(std::vector<Decision> decisions) {
    if (is_over()) return false;
    ++shrunk_.runs;
    Schedule schedule = shrunk_.schedule;
    schedule.decisions = std::move(decisions);
    if (!fails_(schedule)) return false;
    shrunk_.schedule = std::move(schedule);
    return true;
  }
  // Tries to leave out parts of that size, one after the other. True: at least one was left out.
  bool leave_out(std::size_t size) {
    bool some = false;
    for (std::size_t begin = 0; begin < left() && !is_over();) {
      const bool out = take(without(shrunk_.schedule.decisions, begin, std::min(size, left() - begin)));
      some |= out;
      if (!out) begin += size;
    }
    return some;
  }
  // Tries to replace two near decisions by one of them, or by none. True: it worked somewhere. This finds what leaving
  // out one at a time cannot: a switch to another lane and back, and a switch through a third lane.
  bool merge_pairs() {
    bool some = false;
    for (std::size_t i = 0; i < left(); ++i) {
      for (std::size_t j = i + 1; j < left() && j <= i + kNear && !is_over();) {
        const bool merged = merge(i, j);
        some |= merged;
        if (!merged) ++j;
      }
    }
    return some;
  }
  std::size_t left() const { return shrunk_.schedule.decisions.size(); }
  bool is_over() const { return shrunk_.runs >= runs_max_; }

 private:
  bool merge(std::size_t i, std::size_t j) {
    const Decision second = shrunk_.schedule.decisions[j];
    std::vector<Decision> merged = without(shrunk_.schedule.decisions, j, 1);
    if (take(without(merged, i, 1))) return true;
    if (merged[i].kind != second.kind || merged[i].value == second.value) return false;
    merged[i].value = second.value;
    return take(std::move(merged));
  }

  ShrunkSchedule& shrunk_;
  const std::function<bool(const Schedule&)>& fails_;
  const std::uint64_t runs_max_;
};

}  // namespace

std::string to_text(const std::vector<Decision>& decisions) {
  std::string text;
  for (const Decision& decision : decisions) text += (text.empty() ? "" : "; ") + to_text(decision);
  return text;
}

std::string ShrunkSchedule::text() const {
  const std::string rule = "a lane runs until it waits, pauses or ends";
  return schedule.decisions.empty() ? rule : to_text(schedule.decisions) + "; else " + rule;
}

ShrunkSchedule shrink(const Schedule& schedule, const std::vector<Decision>& decisions,
                      const std::function<bool(const Schedule&)>& fails, std::uint64_t runs_max) {
  ShrunkSchedule shrunk;
  shrunk.schedule = schedule;
  shrunk.schedule.kind = Schedule::Kind::replay;
  shrunk.schedule.records_decisions = false;
  shrunk.schedule.decisions = decisions;
  Shrinker shrinker(&shrunk, fails, runs_max);
  shrunk.fails = shrinker.take(decisions);
  if (!shrunk.fails) return shrunk;
  for (std::size_t size = shrinker.left(); !shrunk.is_minimal && !shrinker.is_over(); size = (size + 1) / 2) {
    if (shrinker.leave_out(size) || size > 1 || shrinker.merge_pairs()) continue;
    shrunk.is_minimal = !shrinker.is_over();
  }
  return shrunk;
}

}  // namespace kilokv::engine
