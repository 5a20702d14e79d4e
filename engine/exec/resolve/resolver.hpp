// Resolves a batch before it runs: finds the slot of each key id. After that, execution needs no hash lookups, and the
// memory accesses of the batch are known in advance.
//
// A key that the batch may write, and that has no record, gets a record first. The record is all zero, like one that
// was never written. So every reader in the batch finds it. After the batch, forget_unwritten() removes the records
// that were not written. A key that the batch only reads, and that has no record, resolves to the table's absent slot.
//
// The byte constants of the batch become blobs here. The batch holds a reference to each blob, and gives it up later.
//
// If the table one day holds only a part of the data, this is the place for the change: a key that is missing in the
// table would be fetched from storage here, before any transaction runs.
//
// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/exec/resolve/new_keys.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

class BatchResolver {
 public:
  // RESOURCE_EXHAUSTED if the store has no room for the new keys. The store is then as it was.
  // `read_set`: the number of leading keys that belong to the large read set (exec/validate/read_set.hpp). These keys
  // are checked elsewhere. Such a key is resolved only if another guard or an operation names it, too.
  Status resolve(const TransactionColumns& columns, BatchNumber batch, RecordStore* store, std::uint32_t read_set = 0);
  // Resolves one key, such as one of the large read set. Requires: resolve() was called.
  void resolve_key(const TransactionColumns& columns, std::uint32_t key, const RecordStore& store) {
    slot_of_key_[key] = store.table().find(columns.key_id[key]);
  }

  // Whether forget_unwritten() would remove records. If it does, slots move.
  bool has_unwritten(const RecordStore& store) const;
  // Removes the records that resolve() inserted and that the batch did not write.
  void forget_unwritten(RecordStore* store);

  const std::uint32_t* slot_of_key() const { return slot_of_key_.data(); }  // [k]
  const std::uint64_t* value_word() const { return value_word_.data(); }    // [v] 0: no operation writes the value

 private:
  bool find_all(const TransactionColumns& columns, const RecordStore& store, std::uint32_t read_set);
  bool insert_missing(const TransactionColumns& columns, RecordStore* store);
  void find_moved(const TransactionColumns& columns, std::uint32_t absent, const RecordStore& store);
  bool is_unwritten(std::uint32_t key, const RecordStore& store) const {
    return store.table()[slot_of_key_[key]].cell.tag == 0;
  }
  void add_values(const TransactionColumns& columns, BatchNumber batch, RecordStore* store);

  std::vector<std::uint32_t> slot_of_key_;
  std::vector<std::uint64_t> value_word_;
  NewKeys new_keys_;
  std::vector<std::uint32_t> created_;  // keys that got a record; a record may be there several times
  std::vector<KeyId> unwritten_;
};

}  // namespace kilokv::engine
