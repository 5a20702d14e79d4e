// Text for people: numbers with thousands separators, durations, and tables. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::bench {

std::string grouped(std::uint64_t number);  // 1234567 -> 1,234,567
// A duration with three significant digits and the unit that fits: 87 us, 1.23 ms, 4.56 s.
std::string short_duration(std::int64_t microseconds);
std::string fixed(double number, int decimals);
// A duration in seconds, for an event in a table: 0.41 s.
std::string seconds(std::int64_t microseconds, int decimals = 2);

// A table of aligned columns: the first column is aligned left, the others right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells);  // missing cells are empty
  void rule();                               // a line between rows
  std::string render(std::string_view indent = "") const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;  // an empty row is a rule
};

}  // namespace kilokv::bench
