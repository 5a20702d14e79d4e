// Role: see activity_text.hpp.
#include "client/cli/activity_text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

// A rate that is at most half error, or a certain part that makes a key one of the most used ones in any case. `all`:
// the uses of all keys.
bool is_certain(const HotKey& key, double all) {
  return at_least(key) >= key.per_second / 2 || at_least(key) > all / kHotKeysMax;
}

}  // namespace

std::string text_of(const ShownKey& key) {
  const std::string text = key.hash.empty() ? key_text(key.key) : key.hash;
  return key.is_range ? text + " (range)" : text;
}

std::string rate_text(double per_second) {
  if (per_second < 10) return bench::fixed(per_second, 1);
  return bench::grouped(static_cast<std::uint64_t>(std::llround(per_second)));
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string state_text(const ServerStatus& status) { return status.state + (status.read_only ? ", read-only" : ""); }

double at_least(const HotKey& key) { return std::max(key.per_second - key.error, 0.0); }

std::vector<HotKey> certain_keys(const HotKeysOfUse& use, std::uint32_t limit) {
  std::vector<HotKey> keys;
  std::copy_if(use.keys.begin(), use.keys.end(), std::back_inserter(keys),
               [&](const HotKey& key) { return is_certain(key, use.per_second); });
  std::stable_sort(keys.begin(), keys.end(),
                   [](const HotKey& a, const HotKey& b) { return at_least(a) > at_least(b); });
  if (keys.size() > limit) keys.resize(limit);
  return keys;
}

std::uint64_t count_of(const SlowTransactions& slow) {
  std::uint64_t all = 0;
  for (const auto& [reason, count] : slow.counts) all += count;
  return all;
}

std::vector<std::string> reasons_of(const SlowTransactions& slow) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : slow.counts) {
    if (count > 0) reasons.push_back(bench::grouped(count) + ' ' + reason);
  }
  return reasons;
}

Expected<std::unique_ptr<Activity>> connect_activity(const CommonOptions& common) {
  ClientOptions options = common.server;
  options.connect_timeout_us = common.timeout_us;
  options.request_timeout_us = common.timeout_us;
  return Activity::connect(options);
}

}  // namespace kilokv::client
