// Durations, sizes and shares as people write them: 500us, 1ms, 3s, 2m, 24h; 4096, 64KiB, 1MiB, 2GiB, 1TiB; 0.05.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::server {

// Nothing where the text is not one, or does not fit.
std::optional<std::uint64_t> parse_count(std::string_view text);
std::optional<std::uint64_t> parse_size(std::string_view text);
std::optional<DurationUs> parse_duration(std::string_view text);
std::optional<double> parse_share(std::string_view text);  // digits and a point; of any size

// In the largest unit that is exact; the parsers read it back.
std::string format_size(std::uint64_t bytes);
std::string format_duration(DurationUs duration_us);
std::string format_share(double share);

}  // namespace kilokv::server
