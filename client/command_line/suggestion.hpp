// Suggests the name that a person may have meant after an unknown command or flag. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::client {

// The smallest number of edits that turn `a` into `b`. An edit inserts, removes or replaces a letter, or swaps two
// neighbours. No letter is edited twice ("optimal string alignment").
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name that is most similar to `word`, or one that begins with it. If several are equally similar, the first
// one. Empty if more than a third of the letters differ, but one letter may always differ.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace kilokv::client
