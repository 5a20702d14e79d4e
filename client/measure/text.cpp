// Role: see text.hpp.
#include "client/measure/text.hpp"

#include <algorithm>
#include <cstdio>

namespace kilokv::bench {

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
  const auto three_digits = [](double number, const char* unit) {
    const int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
    return fixed(number, decimals) + unit;
  };
  const auto us = static_cast<double>(microseconds);
  if (microseconds < 1000) return std::to_string(microseconds) + " us";
  if (us < 999.5e3) return three_digits(us / 1e3, " ms");
  return three_digits(us / 1e6, " s");
}

std::string seconds(std::int64_t microseconds, int decimals) {
  return fixed(static_cast<double>(microseconds) / 1e6, decimals) + " s";
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(header_.size());
  rows_.push_back(std::move(cells));
}

void Table::rule() { rows_.emplace_back(); }

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
      out += column == 0 ? cells[column] + padding : padding + cells[column];
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
