// The free places among the keys of a KeyArena (table/key_arena.hpp): how much of its memory new keys can use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kilokv::engine {

// A run is free memory between two keys. It is counted in units of 4 bytes.
struct KeyRoom {
  static constexpr std::size_t kUnitBytes = 4;
  static constexpr std::size_t kShortMin = 3, kLongMin = 258;  // units

  std::array<std::uint32_t, kLongMin> short_runs = {};  // [units]: how many runs of kShortMin to kLongMin - 1 units
  std::uint64_t long_runs = 0, long_units = 0;

  // So many keys fit for sure that need at most `entry_bytes` each, in whatever order they come: an entry of at most m
  // units that is placed in a run of u units lowers u / m, rounded down, by one at most. Requires: `entry_bytes` is
  // what a key needs.
  std::uint64_t keys_of(std::size_t entry_bytes) const {
    const std::uint64_t most = entry_bytes / kUnitBytes;
    std::uint64_t entries = (long_units - long_runs * (most - 1)) / most;
    for (std::size_t units = most; units < kLongMin; ++units) entries += short_runs[units] * (units / most);
    return entries;
  }
};

}  // namespace kilokv::engine
