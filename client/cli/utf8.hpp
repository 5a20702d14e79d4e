// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF. Thread safety: pure
// functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kilokv::client {

// Bytes of the character at the start of the text. 0: there is none.
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view bytes);

// The first bytes of the text, at most `bytes_max` of them. Its last character is there as a whole, or not at all.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);

// The text for a terminal: each control character, those of U+0080 to U+009F included, and each byte that is no UTF-8,
// becomes a question mark.
std::string printable(std::string_view text);

}  // namespace kilokv::client
