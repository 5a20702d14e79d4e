// Text of numbers, as printf makes it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace kilokv::engine::bench {

// The whole text, however long it is.
template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  const int size = std::snprintf(nullptr, 0, pattern, arguments...);
  std::string text(static_cast<std::size_t>(size), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, arguments...);
  return text;
}

// For the pattern %llu.
inline unsigned long long wide(std::uint64_t number) { return number; }

}  // namespace kilokv::engine::bench
