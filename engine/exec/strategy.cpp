#include "engine/exec/strategy.hpp"

namespace kilokv::engine {

const Strategy* find_strategy(std::string_view name) {
  for (const Strategy* strategy : all_strategies()) {
    if (strategy->name == name) return strategy;
  }
  return nullptr;
}

std::vector<std::string> strategies_of_auto(std::string_view order) {
  std::vector<std::string> names;
  for (const Strategy* strategy : all_strategies()) {
    const AutoChoice choice = strategy->traits.auto_choice;
    if (strategy->make_host == nullptr) continue;
    if (choice == AutoChoice::always || (choice == AutoChoice::any && order == "any")) names.push_back(strategy->name);
  }
  return names;
}

}  // namespace kilokv::engine
