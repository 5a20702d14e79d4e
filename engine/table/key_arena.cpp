#include "engine/table/key_arena.hpp"

#include <algorithm>
#include <cstring>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

// A live entry: length, bytes. A freed entry: length 0, and the next freed entry of as many units.
constexpr std::size_t kLengthBytes = sizeof(std::uint16_t);
constexpr std::size_t kNextOffset = 4;

std::uint16_t load16(const char* from) {
  std::uint16_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

void store16(char* to, std::size_t value) {
  const auto narrow = static_cast<std::uint16_t>(value);
  std::memcpy(to, &narrow, sizeof(narrow));
}

}  // namespace

std::size_t KeyArena::units_for(std::size_t key_bytes) {
  // A freed entry needs two units: its length is in the first, and the link to the next freed entry is in the second.
  return std::max<std::size_t>(2, (kLengthBytes + key_bytes + kUnitBytes - 1) / kUnitBytes);
}

std::optional<std::uint32_t> KeyArena::take(std::size_t units) {
  if (free_[units] != kNoEntry) {
    const std::uint32_t ref = free_[units];
    std::memcpy(&free_[units], at(ref) + kNextOffset, sizeof(std::uint32_t));
    return ref;
  }
  if (used_units_ + units > kBlockUnits) {
    if (blocks_.size() == kBlocksMax) return std::nullopt;
    blocks_.emplace_back(kBlockUnits * kUnitBytes);
    used_units_ = 0;
  }
  const std::size_t ref = (blocks_.size() - 1) * kBlockUnits + used_units_;
  used_units_ += units;
  return static_cast<std::uint32_t>(ref);
}

std::optional<std::uint32_t> KeyArena::add(std::string_view key) {
  const std::size_t units = units_for(key.size());
  KILOKV_CHECK(!key.empty() && units <= kUnitsMax);
  const std::optional<std::uint32_t> ref = take(units);
  if (!ref) return ref;
  store16(at(*ref), key.size());
  std::memcpy(at(*ref) + kLengthBytes, key.data(), key.size());
  return ref;
}

void KeyArena::remove(std::uint32_t ref) {
  char* const entry = at(ref);
  const std::size_t units = units_for(load16(entry));
  store16(entry, 0);
  std::memcpy(entry + kNextOffset, &free_[units], sizeof(std::uint32_t));
  free_[units] = ref;
}

std::string_view KeyArena::view(std::uint32_t ref) const {
  const char* const entry = at(ref);
  return {entry + kLengthBytes, load16(entry)};
}

}  // namespace kilokv::engine
