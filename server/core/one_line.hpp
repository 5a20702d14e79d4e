// Texts of others in a line of the log. Thread safety: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace kilokv::server {

// The text on one line, for a value in double quotes: control characters become \n, \r, \t or \xNN, and a backslash
// stands before a double quote or a backslash. A text of a library or of the network can then not look like a line of
// the log.
std::string one_line(std::string_view text);
// The same for a name or a key that may be long: its first 64 bytes, and "..." if there are more.
std::string short_line(std::string_view text);

}  // namespace kilokv::server
