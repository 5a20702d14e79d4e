// Role: see state_check.hpp.
#include "client/bench/state_check.hpp"

#include <optional>
#include <utility>

#include "client/measure/steady_scan.hpp"

namespace kilokv::bench {
namespace {

void add(const client::Pair& pair, engine::InvariantCheck* check) {
  if (const auto* integer = std::get_if<std::int64_t>(&pair.value)) {
    check->add(pair.key, ValueType::integer, *integer, {});
  } else {
    check->add(pair.key, ValueType::bytes, 0, std::get<std::string>(pair.value));
  }
}

}  // namespace

KeySpace::KeySpace(const engine::Workload& workload) {
  Range* range = nullptr;
  workload.for_each_initial([&](const engine::InitialRecord& record) {
    const std::string_view prefix = record.key.substr(0, engine::KeyName::kPrefixBytes);
    if (range == nullptr || !std::string_view(range->first).starts_with(prefix)) {
      range = &ranges_[std::string(prefix)];
      range->first = record.key;
    }
    range->last = record.key;
  });
  const std::string growing = engine::Workload::kind(workload.options().name).growing;
  if (!growing.empty()) ranges_[growing].last = growing + std::string(engine::KeyName::kBytes - growing.size(), '9');
}

bool KeySpace::contains(std::string_view key) const {
  const auto found = ranges_.find(key.substr(0, engine::KeyName::kPrefixBytes));
  return found != ranges_.end() && key >= found->second.first && key <= found->second.last;
}

std::string KeySpace::from() const { return ranges_.begin()->second.first; }
std::string KeySpace::to() const { return ranges_.rbegin()->second.last + '\0'; }

std::vector<std::string> KeySpace::prefixes() const {
  std::vector<std::string> prefixes;
  for (const auto& [prefix, range] : ranges_) prefixes.push_back(prefix);
  return prefixes;
}

client::Expected<StateReport> check_state(client::Client* client, const engine::Workload& workload,
                                          std::int64_t give_up_after_us) {
  const KeySpace keys(workload);
  std::optional<engine::InvariantCheck> check;
  const auto position = scan_steadily(
      client, keys.from(), keys.to(), [&] { check.emplace(workload.invariant()); },
      [&](const client::Pair& pair) {
        if (keys.contains(pair.key)) add(pair, &*check);
      },
      give_up_after_us);
  if (!position) return position.error();
  return StateReport{check->statement(), check->violation(), check->records(), check->total(), position->boundary};
}

}  // namespace kilokv::bench
