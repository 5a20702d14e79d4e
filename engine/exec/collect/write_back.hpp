// Brings the writes of a batch into the record table, after a parallel strategy has run the batch on copies.
//
// With every strategy, the writes in the results must lead to the cells that the strategy left: the log gets the
// writes, and the strategy has decided by the cells. If the two differed, no restart could reach the state. So the
// caller compares, and takes the writes back if they differ.
//
// Not thread-safe.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/exec/collect/batch_writes.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class WriteBack {
 public:
  // For a batch without ranges. `writes`: its results are complete, and `order` is sorted. `results`: those of
  // `writes`. `before`: that of `writes`; gets the cell that each operation replaces. All of it outlives the object.
  WriteBack(const BatchWrites& writes, BatchResults* results, Cell* before, RecordStore* store)
      : writes_(writes), results_(results), before_(before), slots_(store->table().ref().slots) {}

  // Writes to the table what the transactions of the places [first, last) of the rank order have written. The places of
  // all calls follow each other. A delta among the results (BatchResults::kDelta) becomes the value that the ADD left.
  void write(std::uint32_t first, std::uint32_t last);
  // Undoes all of it. Requires: nothing else has changed the table since the first write().
  void take_back() const;

  // Whether no run can leave these results: a write has a version that its transaction does not have, or is to a record
  // that is not there.
  bool is_wrong() const { return is_wrong_; }
  bool has_bytes() const { return has_bytes_; }  // a write has left a byte value
  bool has_new() const { return has_new_; }      // a write has given a record its first version
  // The sum of change_digest() over all writes (table/cell_digest.hpp).
  std::uint64_t change() const { return change_; }

 private:
  const BatchWrites& writes_;
  BatchResults* const results_;
  Cell* const before_;
  Slot* const slots_;
  std::uint32_t written_ = 0;  // places
  std::uint64_t change_ = 0;
  bool has_new_ = false, has_bytes_ = false, is_wrong_ = false;
};

}  // namespace kilokv::engine
