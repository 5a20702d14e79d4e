// The 16-byte keys of the workloads: four letters and twelve decimal digits, such as acct000000000042. The order of the
// keys' bytes is the order of the numbers. Thread safety: immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kilokv::engine {

class KeyName {
 public:
  static constexpr std::size_t kBytes = 16;
  static constexpr std::size_t kPrefixBytes = 4;

  // Requires: prefix has 4 bytes, index < 10^12.
  KeyName(std::string_view prefix, std::uint64_t index) {
    for (std::size_t i = 0; i < kPrefixBytes; ++i) bytes_[i] = prefix[i];
    auto high = static_cast<std::uint32_t>(index / 100'000'000);
    auto low = static_cast<std::uint32_t>(index % 100'000'000);
    for (std::size_t i = kBytes; i-- > kBytes - 8; low /= 10) bytes_[i] = static_cast<char>('0' + low % 10);
    for (std::size_t i = kBytes - 8; i-- > kPrefixBytes; high /= 10) bytes_[i] = static_cast<char>('0' + high % 10);
  }
  std::string_view view() const { return {bytes_.data(), kBytes}; }

  // The number in a key of this form; kNotNumbered for any other key.
  static constexpr std::uint64_t kNotNumbered = ~std::uint64_t{0};
  static std::uint64_t index_of(std::string_view key) {
    if (key.size() != kBytes) return kNotNumbered;
    std::uint64_t index = 0;
    for (const char digit : key.substr(kPrefixBytes)) {
      if (digit < '0' || digit > '9') return kNotNumbered;
      index = index * 10 + static_cast<std::uint64_t>(digit - '0');
    }
    return index;
  }

 private:
  std::array<char, kBytes> bytes_;
};

}  // namespace kilokv::engine
