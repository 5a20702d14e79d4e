// Role: see text.hpp.
#include "client/measure/text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace kilokv::bench {
namespace {

// The number with three significant digits, and then the unit.
std::string three_digits(double number, const char* unit) {
  const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return fixed(number, decimals) + unit;
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string fixed(double number, int decimals) {
  char buffer[64];
  const int length = std::snprintf(buffer, sizeof(buffer), "%.*f", decimals, number);
  return {buffer, static_cast<std::size_t>(std::clamp(length, 0, 63))};
}

std::string short_duration(std::int64_t microseconds) {
  const auto us = static_cast<double>(microseconds);
  if (microseconds < 1000) return std::to_string(microseconds) + " us";
  if (us < 999.5e3) return three_digits(us / 1e3, " ms");
  return three_digits(us / 1e6, " s");
}

std::string long_duration(std::int64_t microseconds) {
  if (microseconds < 60'000'000) return short_duration(microseconds);
  const std::int64_t whole = microseconds / 1'000'000, minutes = whole / 60, hours = minutes / 60;
  const auto two = [](std::int64_t large, const char* unit, std::int64_t small, const char* small_unit) {
    return std::to_string(large) + unit + ' ' + std::to_string(small) + small_unit;
  };
  if (minutes < 60) return two(minutes, "m", whole % 60, "s");
  if (hours < 24) return two(hours, "h", minutes % 60, "m");
  return two(hours / 24, "d", hours % 24, "h");
}

std::string short_size(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array<const char*, 6> kUnits = {" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double number = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; number >= 1023.5 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  return three_digits(number, kUnits[unit]);
}

std::string wrapped(std::string_view label, const std::vector<std::string>& items, std::size_t width) {
  std::string text(label);
  std::size_t used = label.size();  // of this line
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "");
    const bool is_first = used == label.size();
    if (!is_first && used + 1 + item.size() > width) {
      text += '\n' + std::string(label.size(), ' ');
      used = label.size();
    } else if (!is_first) {
      text += ' ';
      ++used;
    }
    text += item;
    used += item.size();
  }
  return text + '\n';
}

std::string seconds(std::int64_t microseconds, int decimals) {
  return fixed(static_cast<double>(microseconds) / 1e6, decimals) + " s";
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

void Table::drop_empty_columns() {
  for (std::size_t column = header_.size(); --column > 0;) {
    const bool is_empty = std::all_of(rows_.begin(), rows_.end(), [column](const std::vector<std::string>& cells) {
      return cells.empty() || cells[column].empty() || cells[column] == "-" || cells[column] == "0";
    });
    if (!is_empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    header_.erase(header_.begin() + at);
    for (auto& cells : rows_) {
      if (!cells.empty()) cells.erase(cells.begin() + at);
    }
  }
}

std::string Table::render(std::string_view indent) const {
  std::vector<std::size_t> width(header_.size());
  for (std::size_t column = 0; column < header_.size(); ++column) {
    width[column] = header_[column].size();
    for (const auto& cells : rows_) {
      if (!cells.empty()) width[column] = std::max(width[column], cells[column].size());
    }
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out(indent);
    for (std::size_t column = 0; column < cells.size(); ++column) {
      const std::string padding(width[column] - cells[column].size(), ' ');
      if (column != 0) out += "  ";
      const bool is_left = text_last_ ? column + 1 == width.size() : column == 0;
      out += is_left ? cells[column] + padding : padding + cells[column];
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  std::size_t total = 2 * (width.size() - 1);
  for (const std::size_t w : width) total += w;
  const std::string rule_line = std::string(indent) + std::string(total, '-') + "\n";
  line(header_);
  text += rule_line;
  for (const auto& cells : rows_) {
    if (cells.empty()) {
      text += rule_line;
    } else {
      line(cells);
    }
  }
  return text;
}

}  // namespace kilokv::bench
