// The size of the last writer histories of `kilo`, as people write it. It is a preset of the KILO TM paper (section
// 6.3.2), or ENTRIES+BUCKETS: the entries of each table, a plus, and the buckets of each filter.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kilokv::engine {

inline constexpr std::uint32_t kFilterArrays = 4, kHistoryWays = 4;

struct HistorySize {
  static constexpr std::uint32_t kEntriesMax = 1u << 16, kBucketsMax = 1u << 18;
  static constexpr const char* kForms =
      "5kB (512+1024), 512B (64+64), or ENTRIES+BUCKETS: 1 to 65536 + 4 to 262144, multiples of 4";

  std::uint32_t entries, buckets;
};

// Returns nothing if the text has none of these forms.
inline std::optional<HistorySize> parse_history_size(std::string_view text) {
  if (text == "5kB") return HistorySize{512, 1024};
  if (text == "512B") return HistorySize{64, 64};
  const std::size_t plus = text.find('+');
  if (plus == std::string_view::npos) return std::nullopt;
  const auto parse = [](std::string_view part) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = error == std::errc() && end == part.data() + part.size();
    return is_number ? number : 0;  // no size is 0
  };
  const std::uint32_t entries = parse(text.substr(0, plus)), buckets = parse(text.substr(plus + 1));
  if (entries == 0 || entries > HistorySize::kEntriesMax) return std::nullopt;
  if (entries > kHistoryWays && entries % kHistoryWays != 0) return std::nullopt;
  if (buckets < kFilterArrays || buckets > HistorySize::kBucketsMax) return std::nullopt;
  if (buckets % kFilterArrays != 0) return std::nullopt;
  return HistorySize{entries, buckets};
}

}  // namespace kilokv::engine
