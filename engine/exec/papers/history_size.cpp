#include "engine/exec/papers/history_size.hpp"

#include <charconv>

#include "engine/stm/papers/kilo_arguments.hpp"

namespace kilokv::engine {
namespace {

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<HistorySize> parse_history_size(std::string_view text) {
  if (text == "5kB") return HistorySize{512, 1024};
  if (text == "512B") return HistorySize{64, 64};
  const std::size_t plus = text.find('+');
  if (plus == std::string_view::npos) return std::nullopt;
  const auto entries = parse_number(text.substr(0, plus));
  const auto buckets = parse_number(text.substr(plus + 1));
  if (!entries || *entries == 0 || *entries > HistorySize::kEntriesMax) return std::nullopt;
  if (*entries > kHistoryWays && *entries % kHistoryWays != 0) return std::nullopt;
  if (!buckets || *buckets < kFilterArrays || *buckets > HistorySize::kBucketsMax) return std::nullopt;
  if (*buckets % kFilterArrays != 0) return std::nullopt;
  return HistorySize{*entries, *buckets};
}

}  // namespace kilokv::engine
