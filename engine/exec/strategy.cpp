#include "engine/exec/strategy.hpp"

#include <algorithm>

namespace kilokv::engine {

const Strategy* find_strategy(std::string_view name) {
  for (const Strategy* strategy : all_strategies()) {
    if (strategy->name == name) return strategy;
  }
  return nullptr;
}

bool runs_on(const Strategy& strategy, const DeviceKernels& kernels) {
  if (strategy.make_device == nullptr || strategy.kernels.empty()) return false;
  return std::all_of(strategy.kernels.begin(), strategy.kernels.end(),
                     [&](const EmulatedKernel& kernel) { return kernels.look_up(kernel.name).has_value(); });
}

std::vector<std::string> strategies_of_auto(std::string_view order, bool on_device) {
  std::vector<std::string> names;
  for (const Strategy* strategy : all_strategies()) {
    const AutoChoice choice = strategy->traits.auto_choice;
    if (strategy->make_host == nullptr) continue;
    if (choice == AutoChoice::always || (choice == AutoChoice::on_device && on_device) ||
        (choice == AutoChoice::any && order == "any")) {
      names.push_back(strategy->name);
    }
  }
  return names;
}

}  // namespace kilokv::engine
