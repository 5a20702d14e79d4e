// Role: see suggestion.hpp.
#include "client/command_line/suggestion.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::client {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Row i of the table has the distances from the first i letters of `a` to each beginning of `b`.
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : known) {
    if (word.size() >= name.size() + least) continue;  // so far away at least; `word` may be very long
    const bool begun = word.size() >= 2 && name.starts_with(word);
    const std::size_t distance = begun ? 1 : edit_distance(word, name);
    if (distance >= least || distance >= name.size()) continue;
    best = name;
    least = distance;
  }
  return best;
}

}  // namespace kilokv::client
