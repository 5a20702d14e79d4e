#include "server/core/one_line.hpp"

#include <algorithm>
#include <cstddef>

#include "server/core/hex.hpp"

namespace kilokv::server {

namespace {

unsigned char byte_of(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// Whether the byte is a further one of a letter in UTF-8. After 0xC2 it would be one of the controls.
bool continues_a_letter(std::string_view text, std::size_t at) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(at, 3); ++back) {
    const unsigned char byte = byte_of(text, at - back);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC3 ? 2 : 1;
    return byte <= 0xF4 && back < length;
  }
  return false;
}

// Some terminals also obey the controls from 0x80 to 0x9F, as one byte, or in UTF-8, where 0xC2 stands before them.
bool is_control(std::string_view text, std::size_t at) {
  const auto is_high = [](unsigned char byte) { return byte >= 0x80 && byte <= 0x9F; };
  const unsigned char byte = byte_of(text, at);
  if (byte == 0xC2) return is_high(byte_of(text, at + 1));
  if (is_high(byte)) return !continues_a_letter(text, at);
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
      case '\\': line += {'\\', c}; break;
      case '\n': line += "\\n"; break;
      case '\r': line += "\\r"; break;
      case '\t': line += "\\t"; break;
      default:
        if (is_control(text, i)) {
          line += "\\x";
          append_hex(byte, &line);
        } else {
          line += c;
        }
    }
  }
  return line;
}

std::string short_line(std::string_view text) {
  constexpr std::size_t kShown = 64;
  std::string line = one_line(text.substr(0, kShown));
  if (text.size() > kShown) line.append("...");
  return line;
}

}  // namespace kilokv::server
