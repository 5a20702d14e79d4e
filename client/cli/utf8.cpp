// Role: see utf8.hpp.
#include "client/cli/utf8.hpp"

#include <algorithm>

namespace kilokv::client {
namespace {

constexpr unsigned kAsciiEnd = 0x80;

unsigned byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

bool continues(std::string_view text, std::size_t i) { return (byte_at(text, i) & 0xC0) == 0x80; }

// Whether the second byte is one that may follow the first one: this rules out overlong forms, surrogates, and numbers
// that are too large.
bool second_fits(unsigned first, unsigned second) {
  const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= least && second <= most;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < kAsciiEnd) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (!second_fits(first, byte_at(text, 1))) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (!continues(text, i)) return 0;
  }
  return size;
}

bool is_utf8(std::string_view bytes) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < kAsciiEnd; };
  while (true) {
    bytes.remove_prefix(
        static_cast<std::size_t>(std::find_if_not(bytes.begin(), bytes.end(), is_ascii) - bytes.begin()));
    if (bytes.empty()) return true;
    const std::size_t size = utf8_length(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
  std::size_t size = std::min(text.size(), bytes_max);
  while (size > 0 && continues(text, size)) --size;
  return text.substr(0, size);
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const unsigned first = byte_at(text, 0);
    const bool is_control = first < ' ' || first == 0x7F || (first == 0xC2 && byte_at(text, 1) < 0xA0);
    if (size == 0 || is_control) {
      shown += '?';
    } else {
      shown += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return shown;
}

}  // namespace kilokv::client
