// Durations, sizes and shares in the forms that people write. Durations: 500us, 1ms, 3s, 2m, 24h. Sizes: 4096, 64KiB,
// 1MiB, 2GiB, 1TiB. Shares: 0.05.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::server {

// Parsers. The result is empty if the text is malformed, or if its value does not fit the type.
std::optional<std::uint64_t> parse_count(std::string_view text);
std::optional<std::uint64_t> parse_size(std::string_view text);
std::optional<DurationUs> parse_duration(std::string_view text);
std::optional<double> parse_share(std::string_view text);  // digits, with or without a point; not limited to 1

// The parsers read back what this, format_size() and format_duration() write.
std::string format_share(double share);

}  // namespace kilokv::server
