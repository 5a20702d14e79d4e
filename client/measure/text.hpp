// Text for people: numbers with thousands separators, durations, and tables. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kilokv::bench {

std::string grouped(std::uint64_t number);  // 1234567 -> 1,234,567
// A duration with three significant digits and the unit that fits: 87 us, 1.23 ms, 4.56 s.
std::string short_duration(std::int64_t microseconds);
std::string fixed(double number, int decimals);
// A longer time in its two largest units: 45.1 s, 3m 20s, 5h 12m, 12d 3h.
std::string long_duration(std::int64_t microseconds);
// Bytes with three significant digits and the unit that fits: 512 B, 1.50 KiB, 12.3 MiB.
std::string short_size(std::uint64_t bytes);
// A duration in seconds, for an event in a table: 0.41 s.
std::string seconds(std::int64_t microseconds, int decimals = 2);

// `label`, and then the items with commas between them. A line has at most `width` characters, unless one item is
// longer. Each further line begins with as many blanks as the label has characters.
std::string wrapped(std::string_view label, const std::vector<std::string>& items, std::size_t width = 80);

// A table of aligned columns: the first column is aligned left, the others right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells);  // missing cells are empty
  void rule();                               // a line between rows
  // Aligns the last column left, and the first one right: for long texts, such as keys, at the end of the lines.
  void text_last() { text_last_ = true; }
  // Leaves out each column, but the first one, in which all cells are empty, "-" or "0".
  void drop_empty_columns();
  std::string render(std::string_view indent = "") const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
  bool text_last_ = false;
};

}  // namespace kilokv::bench
