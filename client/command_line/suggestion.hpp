// What a person may have meant who typed a name that is not known: a command, or a flag. Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::client {

// How many letters have to be put in, left out, replaced, or swapped with their neighbour to get from `a` to `b`; no
// letter is touched twice ("optimal string alignment").
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name that is nearest to `word`, or one that begins with it; the first of equals. None is near enough if
// more than a third of the letters differ, but one may.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace kilokv::client
