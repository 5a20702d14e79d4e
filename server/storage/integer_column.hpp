// A column of integers at the smallest width that can hold them (frame of reference). The column has the least value
// once, and the distance of each value from it in 0, 1, 2, 4 or 8 bytes. Balances, key lengths and rank steps mostly
// need 0 to 2.
//
// Layout: i64 least, u8 width, then count x width bytes, little-endian.
// Thread safety: none; a view is immutable.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "server/storage/bytes.hpp"

namespace kilokv::server::storage {

namespace internal {
template <class Narrow, class Get>
void put_distances(char* to, std::size_t count, std::uint64_t least, const Get& get) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto distance = static_cast<Narrow>(static_cast<std::uint64_t>(get(i)) - least);
    std::memcpy(to + i * sizeof distance, &distance, sizeof distance);
  }
}
}  // namespace internal

// Appends the column of the values get(0) to get(count - 1), which are std::int64_t.
template <class Get>
void put_integer_column(std::string* out, std::size_t count, const Get& get) {
  std::int64_t least = count == 0 ? 0 : get(0);
  std::int64_t most = least;
  for (std::size_t i = 1; i < count; ++i) {
    const std::int64_t value = get(i);
    least = value < least ? value : least;
    most = value > most ? value : most;
  }
  const auto base = static_cast<std::uint64_t>(least);
  const std::uint64_t span = static_cast<std::uint64_t>(most) - base;
  const std::uint8_t width = span == 0            ? 0
                             : span <= UINT8_MAX  ? 1
                             : span <= UINT16_MAX ? 2
                             : span <= UINT32_MAX ? 4
                                                  : 8;
  put(out, least);
  put(out, width);
  const std::size_t begin = out->size();
  out->resize(begin + count * width);
  char* to = out->data() + begin;
  switch (width) {
    case 1: internal::put_distances<std::uint8_t>(to, count, base, get); break;
    case 2: internal::put_distances<std::uint16_t>(to, count, base, get); break;
    case 4: internal::put_distances<std::uint32_t>(to, count, base, get); break;
    case 8: internal::put_distances<std::uint64_t>(to, count, base, get); break;
    default: break;
  }
}

// A view of an encoded column.
class IntegerColumn {
 public:
  IntegerColumn() = default;
  // Reads a column. The reader turns bad if the column is malformed, or shorter than `count`.
  IntegerColumn(Reader* reader, std::size_t count) {
    base_ = reader->get<std::uint64_t>();
    width_ = reader->get<std::uint8_t>();
    if (width_ > 8 || (width_ & (width_ - 1)) != 0) {
      reader->fail();
      return;
    }
    distances_ = reader->bytes(std::uint64_t{count} * width_).data();
  }

  // Requires: the reader was good; i < count.
  std::int64_t operator[](std::size_t i) const {
    std::uint64_t distance = 0;
    switch (width_) {
      case 1: distance = static_cast<unsigned char>(distances_[i]); break;
      case 2: distance = load<std::uint16_t>(distances_ + 2 * i); break;
      case 4: distance = load<std::uint32_t>(distances_ + 4 * i); break;
      case 8: distance = load<std::uint64_t>(distances_ + 8 * i); break;
      default: break;
    }
    return static_cast<std::int64_t>(base_ + distance);
  }

 private:
  std::uint64_t base_ = 0;
  std::uint8_t width_ = 0;
  const char* distances_ = nullptr;
};

}  // namespace kilokv::server::storage
