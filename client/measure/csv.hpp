// A cell of CSV (RFC 4180): in quotes if it has to be. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kilokv::bench {

// A cell that is empty, begins or ends with a blank, or has the separator, a quote or a line break, gets quotes.
void append_csv_cell(std::string_view text, char separator, std::string* out);
// The cells with commas between them, and a newline. An empty cell stays empty.
void append_csv_row(const std::vector<std::string>& cells, std::string* out);

}  // namespace kilokv::bench
