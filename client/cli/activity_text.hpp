// Words for what goes on in a server: keys, rates and counts, as the commands of activity_commands.hpp print them.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands.hpp"
#include "kilokv/activity.hpp"

namespace kilokv::client {

std::string text_of(const ShownKey& key);
std::string rate_text(double per_second);
std::string or_dash(const std::string& text);
std::string state_text(const ServerStatus& status);  // such as "ready, read-only"

// The part of a rate that is certain: the rate without the most by which it can be too high.
double at_least(const HotKey& key);

// At most `limit` keys whose rates are mostly certain. The key with the highest certain rate comes first. A rate that
// is mostly the error of the estimate says nothing, but a person would take the key for a hot one. The server sorts by
// the whole rate. So ask it for kHotKeysMax keys first.
std::vector<HotKey> certain_keys(const HotKeysOfUse& use, std::uint32_t limit);
inline constexpr std::uint32_t kHotKeysMax = 256;  // the most that the server gives of each use

// How many slow transactions there were since the start, and of which reasons, such as "12 waiting".
std::uint64_t count_of(const SlowTransactions& slow);
std::vector<std::string> reasons_of(const SlowTransactions& slow);

Expected<std::unique_ptr<Activity>> connect_activity(const CommonOptions& common);

}  // namespace kilokv::client
