#include "engine/exec/run/chooser.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::engine {

void Chooser::begin(const std::vector<std::string>& of_executor) {
  for (std::size_t able = 1; able < choices_.size(); ++able) {
    std::vector<std::string> names = {"serial"};
    if ((able & kPipelines) != 0) names.emplace_back("pipelined");
    if ((able & kPartitions) != 0) names.emplace_back("partitioned");
    if ((able & kHasOthers) != 0) names.insert(names.end(), of_executor.begin(), of_executor.end());
    // Without an executor, no batch will use the choices that have one.
    choices_[able] = {StrategyChoice(std::max<std::size_t>(names.size(), 2)), std::move(names)};
  }
}

Chooser::Chosen Chooser::choose(const TransactionColumns& columns, Able able) {
  able.partitioned = able.partitioned && helpers_ + 1 >= kPartitionedThreadsMin;
  const std::size_t uses = columns.guard_kind.size() + columns.op_kind.size();
  has_chosen_ = able.any() && columns.size() >= StrategyChoice::kTransactionsMin && uses >= kUsesMin;
  if (!has_chosen_) return {};
  last_ = (able.pipelined ? kPipelines : 0) + (able.partitioned ? kPartitions : 0) + (able.parallel ? kHasOthers : 0);
  std::size_t strategy =
      choices_[last_].choice.next(columns.size(), contention_.of(columns), helpers_ == 0 ? 0 : pressure_.share());
  if (strategy == 0) return {};
  if (able.pipelined && --strategy == 0) return {Way::pipelined};
  if (able.partitioned && --strategy == 0) return {Way::partitioned};
  return {Way::parallel, strategy - 1};
}

void Chooser::took(bool as_chosen, double seconds, double helper_seconds) {
  StrategyChoice& choice = choices_[last_].choice;
  choice.took(as_chosen ? choice.reason().chosen : 0, seconds, helper_seconds);
}

std::string Chooser::text() const {
  const Choice& last = choices_[last_];
  if (last.choice.reason().transactions != 0) return last.choice.reason().text(last.names);
  return "serial: no batch yet had at least " + std::to_string(StrategyChoice::kTransactionsMin) +
         " transactions, and at least " + std::to_string(kUsesMin) + " guards and operations";
}

}  // namespace kilokv::engine
