// What a batch has written, as the columns of the batch show it: for each operation that wrote, the cell before it and
// the cell after it. Plain pointers.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/table/record_table.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

struct BatchWrites {
  const TransactionColumns* columns = nullptr;
  const BatchResults* results = nullptr;
  const RankOrder* order = nullptr;
  const Cell* before = nullptr;                 // [m] what the operation replaced; unspecified if it wrote nothing
  const std::uint32_t* slot_of_key = nullptr;   // [k]
  const std::uint32_t* slot_of_pair = nullptr;  // [pairs]
  BatchHeader header = {};

  bool empty() const { return columns == nullptr; }
  bool deletes_range(std::uint32_t operation) const {
    return columns->op_kind[operation] == static_cast<std::uint8_t>(OpKind::delete_range);
  }
  // The cell that transaction t leaves in each record of a DELETE_RANGE.
  Cell deleted_by(std::uint32_t t) const {
    return {0, make_tag(header.first_version + results->rank[t], ValueType::absent)};
  }

  // Calls f(operation, id, before, after) for each write, in rank order. Requires: the slots of pairs are still those
  // of `table`.
  template <class F>
  void for_each(const RecordTable& table, const F& f) const {
    order->for_each(*results, [&](std::uint32_t t) {
      const OperationRange ran = operations_run(*columns, *results, t);
      for (std::uint32_t i = ran.begin; i < ran.end; ++i) {
        if ((results->op_flags[i] & BatchResults::kWrote) == 0) continue;
        const std::uint32_t at = columns->op_key[i];
        if (!deletes_range(i)) {
          f(i, columns->key_id[at], before[i], results->op_cell[i]);
          continue;
        }
        for (std::uint32_t pair = results->range_begin[at]; pair < results->range_end[at]; ++pair) {
          f(i, table[slot_of_pair[pair]].id, results->pair_cell[pair], deleted_by(t));
        }
      }
    });
  }
};

}  // namespace kilokv::engine
