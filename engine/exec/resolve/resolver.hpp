// Resolving a batch: from key ids to slots, before it runs. After it, execution needs no hash lookups, and its memory
// accesses are known ahead.
//
// Keys that the batch may write and that have no record get one first (never written, all zero), so that every reader
// in the batch finds it; those that nobody wrote in the end are removed by forget_unwritten(). Keys that are only read
// and have no record resolve to the table's absent slot.
//
// Byte constants of the batch become blobs here, each with a reference that the batch gives up.
//
// This is the seam for data that is not resident: a key that is missing from the table would be fetched from storage at
// the place where it is found missing, before anything runs.
//
// Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

class BatchResolver {
 public:
  // RESOURCE_EXHAUSTED when the store cannot take the new keys; it is then as it was.
  // `read_set`: so many leading keys are those of as many leading guards, which are checked elsewhere
  // (exec/validate/read_set.hpp): they are resolved only if something else names them.
  Status resolve(const TransactionColumns& columns, BatchNumber batch, RecordStore* store, std::uint32_t read_set = 0);
  // One of these after all. Requires: resolve().
  void resolve_key(const TransactionColumns& columns, std::uint32_t key, const RecordStore& store) {
    slot_of_key_[key] = store.table().find(columns.key_id[key]);
  }

  // Whether forget_unwritten() has something to do: then slots move.
  bool has_unwritten(const RecordStore& store) const;
  void forget_unwritten(RecordStore* store);

  const std::uint32_t* slot_of_key() const { return slot_of_key_.data(); }  // [k]
  const std::uint64_t* value_word() const { return value_word_.data(); }    // [v]; 0: not written by an operation

 private:
  bool find_all(const TransactionColumns& columns, const RecordStore& store, std::uint32_t read_set);
  bool insert_missing(const TransactionColumns& columns, RecordStore* store);
  void add_values(const TransactionColumns& columns, BatchNumber batch, RecordStore* store);

  std::vector<std::uint32_t> slot_of_key_;
  std::vector<std::uint64_t> value_word_;
  std::vector<KeyId> inserted_;
};

}  // namespace kilokv::engine
