// Role: see csv.hpp.
#include "client/measure/csv.hpp"

#include <algorithm>

namespace kilokv::bench {
namespace {

bool needs_quotes(std::string_view cell, char separator) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const auto is_special = [separator](char c) { return c == separator || c == '"' || c == '\r' || c == '\n'; };
  return cell.empty() || is_blank(cell.front()) || is_blank(cell.back()) ||
         std::any_of(cell.begin(), cell.end(), is_special);
}

}  // namespace

void append_csv_cell(std::string_view text, char separator, std::string* out) {
  if (!needs_quotes(text, separator)) {
    out->append(text);
    return;
  }
  out->push_back('"');
  for (const char c : text) {
    if (c == '"') out->push_back('"');
    out->push_back(c);
  }
  out->push_back('"');
}

void append_csv_row(const std::vector<std::string>& cells, std::string* out) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) out->push_back(',');
    if (!cells[i].empty()) append_csv_cell(cells[i], ',', out);
  }
  out->push_back('\n');
}

}  // namespace kilokv::bench
