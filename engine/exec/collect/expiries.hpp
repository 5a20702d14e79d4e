// When keys expire, after a batch has run. No guard, read or strategy looks at an expiry. So all of it follows from the
// writes of the batch, in rank order: a PUT or an ADD that names an expiry sets it, a PUT that names none clears it, an
// ADD that names none keeps it, and a delete clears it. What was undone wrote nothing.
//
// Not thread-safe. Keeps its capacity.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/exec/collect/batch_writes.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// The time that an expiry names in a batch with this stamp. A time that no stamp can reach counts as kNever.
inline TimeUs time_of_expiry(Expiry kind, std::int64_t us, TimeUs stamp_us) {
  if (kind == Expiry::at) return us;
  return us > kNever - stamp_us ? kNever : stamp_us + us;
}

class BatchExpiries {
 public:
  // Sets the expiries of the store's keys, and fills the expiry columns of `collected`. Requires: `collected` has the
  // writes of the batch; the slots of pairs are still those of the store.
  void settle(const BatchWrites& writes, RecordStore* store, WriteColumns* collected);
  // When the key expired before the last batch. Only for keys that it wrote.
  TimeUs before(KeyId id, const RecordStore& store) const;

 private:
  struct KeyIdHash {
    std::size_t operator()(const KeyId& id) const noexcept { return id.low; }
  };

  std::vector<std::uint32_t> expiry_of_op_;              // [m] index into the expiry columns, or kNone
  std::unordered_map<KeyId, TimeUs, KeyIdHash> before_;  // of the keys whose expiry the last batch has changed
};

}  // namespace kilokv::engine
