// The state hash of a set of records without a table: the sum that Engine::state_hash() has for the same records. It
// takes no memory for them.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/base/key_hash.hpp"
#include "engine/base/types.hpp"

namespace kilokv::engine {

class StateSum {
 public:
  explicit StateSum(const KeyHashSecret& secret) : secret_(secret) {}

  // What this record adds to the sum. `type` absent: a tombstone. `integer` or `bytes` counts, as the type says.
  // `expires_us`: when the key expires; 0: never.
  Hash128 share(std::string_view key, Version version, ValueType type, std::int64_t integer, std::string_view bytes,
                TimeUs expires_us) const;
  void add(const Hash128& share);
  Hash128 hash() const { return sum_; }

 private:
  const KeyHashSecret secret_;
  Hash128 sum_;
};

}  // namespace kilokv::engine
