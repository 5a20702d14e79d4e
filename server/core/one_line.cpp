#include "server/core/one_line.hpp"

namespace kilokv::server {

std::string one_line(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
      case '\\': line += {'\\', c}; break;
      case '\n': line += "\\n"; break;
      case '\r': line += "\\r"; break;
      case '\t': line += "\\t"; break;
      default:
        if (byte < 0x20 || byte == 0x7F) {
          line += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
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
