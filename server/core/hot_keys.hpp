// The keys that are used most at present, by how they are used (core/pipeline/hot_key_watch.hpp).
//
// Thread safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/types.hpp"

namespace kilokv::server {

enum class KeyUse : std::uint8_t {
  read,          // by a guard, by a GET, or by a range that is read
  write,         // by a PUT, ADD, DELETE or DELETE_RANGE
  failed_guard,  // the guard that decided a transaction was false
  wait,          // a transaction waits for a guard on the key; again each time it was tried again without success
};
inline constexpr std::size_t kKeyUses = 4;

// A use counts half after this time.
inline constexpr DurationUs kHotKeysHalfLifeUs = 10'000'000;

struct HotKey {
  std::string key;        // of a range: its begin
  bool is_range = false;  // what was used is a range that begins at the key
  double per_second = 0;  // an estimate
  double error = 0;       // the estimate is too high by at most so much, beside the error of the sample
};

struct HotKeys {
  double per_second = 0;             // uses of all keys
  std::uint64_t sampled_one_in = 1;  // one transaction of this many is counted; 1: all
  std::vector<HotKey> keys;          // the most used first
};

}  // namespace kilokv::server
