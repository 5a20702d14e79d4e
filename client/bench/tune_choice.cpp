// Role: see tune_choice.hpp.
#include "client/bench/tune_choice.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace kilokv::bench {

std::size_t SizeResults::runs_within(double goal_us) const {
  return static_cast<std::size_t>(
      std::count_if(p99_us.begin(), p99_us.end(), [goal_us](double p99) { return p99 <= goal_us; }));
}

std::optional<Choice> choose(const std::vector<SizeResults>& sizes, double share) {
  Choice choice;
  double best = 0;
  for (const SizeResults& one : sizes) {
    if (one.speed().median <= best) continue;
    best = one.speed().median;
    choice.best = one.size;
  }
  if (best <= 0) return std::nullopt;
  const double wanted = share * best;
  for (const SizeResults& one : sizes) {
    const Summary speed = one.speed();
    if (choice.size == 0 && speed.median >= wanted) choice.size = one.size;
    const bool is_contender = *std::max_element(one.per_s.begin(), one.per_s.end()) >= wanted;
    if (!is_contender || speed.spread < choice.spread) continue;
    choice.spread = speed.spread;
    choice.widest = one.size;
  }
  choice.too_busy = choice.spread > kSpreadMax;
  for (const SizeResults& one : sizes) {
    const double median = one.speed().median;
    if (one.size != choice.size && median * (1 + choice.spread) >= wanted) choice.others.push_back(one.size);
    if (median * (1 - choice.spread) >= wanted) break;  // it is good enough in any case, so no larger size is chosen
  }
  return choice;
}

std::optional<Choice> choose_within_goal(const std::vector<SizeResults>& sizes, double goal_us) {
  const auto those = [&sizes](const auto& is_good) {
    std::vector<SizeResults> good;
    std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(good), is_good);
    return good;
  };
  auto choice = choose(those([=](const SizeResults& one) { return one.p99() <= goal_us; }), 1.0);
  if (!choice) return choice;
  const auto always = [=](const SizeResults& one) { return one.runs_within(goal_us) == one.p99_us.size(); };
  const SizeResults& chosen =
      *std::find_if(sizes.begin(), sizes.end(), [&choice](const SizeResults& one) { return one.size == choice->size; });
  std::set<std::uint32_t> others(choice->others.begin(), choice->others.end());
  for (const SizeResults& one : sizes) {  // those that miss the goal, but not always
    const bool is_as_fast = one.speed().median * (1 + choice->spread) >= chosen.speed().median;
    if (one.p99() > goal_us && one.runs_within(goal_us) > 0 && is_as_fast) others.insert(one.size);
  }
  if (!always(chosen)) {
    if (const auto surely = choose(those(always), 1.0)) others.insert(surely->size);
  }
  choice->others.assign(others.begin(), others.end());
  return choice;
}

}  // namespace kilokv::bench
