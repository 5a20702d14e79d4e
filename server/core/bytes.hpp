// Writes and reads little-endian bytes, for formats that go to the disk. A reader never reads past its end: it turns
// bad, and returns zeros from then on. So its user checks it only once, at the end.
//
// Thread safety: none.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace kilokv::server::bytes {

static_assert(std::endian::native == std::endian::little, "integers are copied from memory byte by byte");

template <class T>
void put(std::string* out, T value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T load(const char* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  std::string_view bytes(std::uint64_t count) {
    if (count > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <class T>
  T get() {
    const std::string_view taken = bytes(sizeof(T));
    return taken.size() == sizeof(T) ? load<T>(taken.data()) : T{};
  }

  std::string_view rest() const { return rest_; }
  void fail() { good_ = false; }
  bool good() const { return good_; }
  bool finished() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace kilokv::server::bytes
