// The size of the last writer histories of `kilo`, as people write it: a preset of the KILO TM paper (section 6.3.2),
// or the number of entries in each table, a plus, and that of buckets in each filter.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kilokv::engine {

struct HistorySize {
  static constexpr std::uint32_t kEntriesMax = 1u << 16, kBucketsMax = 1u << 18;
  static constexpr const char* kForms =
      "5kB (512+1024), 512B (64+64), or ENTRIES+BUCKETS: 1 to 65536 + 4 to 262144, multiples of 4";

  std::uint32_t entries, buckets;
};

// Nothing: it is none of these forms.
std::optional<HistorySize> parse_history_size(std::string_view text);

}  // namespace kilokv::engine
