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
// Not thread-safe, but for find_hints() and find_share(). Keeps its capacity, so that the steady state allocates
// nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/exec/resolve/hint_finder.hpp"
#include "engine/exec/resolve/new_keys.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

class BatchResolver {
 public:
  // RESOURCE_EXHAUSTED if the store has no room for the new keys. The store is then as it was.
  // `read_set`: the number of leading keys that belong to the large read set (exec/validate/read_set.hpp). These keys
  // are checked elsewhere. Such a key is resolved only if another guard or an operation names it, too.
  // `digest`: gets the sum over all keys k of cell_digest(k, its cell); null: nobody needs it. Not null: there is no
  // large read set.
  Status resolve(const TransactionColumns& columns, BatchNumber batch, RecordStore* store, std::uint32_t read_set = 0,
                 std::uint64_t* digest = nullptr);
  // The same in shares of equal size, for a batch without ranges and without a large read set: open_shares(), then
  // find_share() on each of several threads, and then finish_shares(). Errors: as for resolve().
  void open_shares(const TransactionColumns& columns);
  void find_share(const TransactionColumns& columns, const RecordStore& store, std::uint32_t share,
                  std::uint32_t shares);
  Status finish_shares(const TransactionColumns& columns, BatchNumber batch, RecordStore* store);
  // The same in parts, while the batch runs: open(), and then find_for() before the transactions [first, last) run. The
  // transactions of all calls follow each other. New keys of the batch are created by the first find_for() that misses
  // a key. Slots may move then. Requires: the store has room for all keys of the batch, and the batch has no ranges.
  void open(const TransactionColumns& columns, BatchNumber batch, RecordStore* store);
  // Between open() and the last find_for(), other threads can find hints: begin_hints(), and then find_hints() on each
  // of them.
  void begin_hints(const TransactionColumns& columns, const RecordStore& store) {
    hints_.open(columns.key_id, store.table());
  }
  void find_hints() { hints_.find(); }
  void find_for(const TransactionColumns& columns, std::uint32_t first, std::uint32_t last, RecordStore* store);

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
  bool find_all_digested(const TransactionColumns& columns, const RecordTable& table, std::uint64_t* digest);
  Status create_missing(const TransactionColumns& columns, RecordStore* store, std::uint32_t read_set);
  bool insert_missing(const TransactionColumns& columns, RecordStore* store);
  void find_moved(const TransactionColumns& columns, std::uint32_t absent, const RecordStore& store);
  bool is_unwritten(std::uint32_t key, const RecordStore& store) const {
    return store.table()[slot_of_key_[key]].cell.tag == 0;
  }
  void add_values(const TransactionColumns& columns, BatchNumber batch, RecordStore* store);

  std::vector<std::uint32_t> slot_of_key_;
  std::atomic<bool> misses_ = false;  // a share has a key that has no record
  HintFinder hints_;
  std::uint32_t found_ = 0;  // find_for() has found the keys before this one
  std::vector<std::uint64_t> value_word_;
  NewKeys new_keys_;
  std::vector<std::uint32_t> created_;  // keys that got a record; a record may be there several times
  std::vector<KeyId> unwritten_;
};

}  // namespace kilokv::engine
