// What every parallel strategy gets of a batch: the batch's columns, its results, and each of its records once
// (exec/resolve/batch_records.hpp). Trivially copyable.
//
// If a device numbers the records (BatchShape::host_records is false), a record has the number of the first key that
// names it. Then d is k, the numbers have gaps, the cells in the gaps are undefined, and no record is the absent one.
//
// In the comments on the columns, the batch has n transactions, k keys, v byte values and d records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/section.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/batch_shape.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

template <class Space>
struct BatchArguments {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;
  BatchViewIn<Space> batch;
  ResultViewIn<Space> results;
  Pointer<const std::uint8_t> expires = {};         // [n]
  Pointer<const std::uint32_t> order = {};          // [n] position -> transaction; null: they are equal
  Pointer<const std::uint32_t> record_of_key = {};  // [k] key -> record
  Pointer<const std::uint64_t> value_word = {};     // [v] the word of each byte value
  Pointer<const std::uint32_t> equal_begin = {};    // [v] byte value i equals the values whose words are
  Pointer<const std::uint32_t> equal_end = {};      // [v]   equal_word[equal_begin[i], equal_end[i])
  Pointer<const std::uint64_t> equal_word = {};     // ascending for each value
  Pointer<std::uint64_t> cells = {};                // [2d] word and tag, before the batch and after it
  std::uint32_t absent_record = kNone;              // the one record of all keys that are absent and only read

  // Lists the columns (base/section.hpp).
  template <class F>
  void for_columns(const BatchShape& shape, const F& column) {
    const std::size_t n = shape.transactions, guards = shape.guards, m = shape.operations;
    column(batch.guard_end, n, Section::sent);
    column(batch.then_end, n, Section::sent);
    column(batch.else_end, n, Section::sent);
    column(batch.guard_kind, guards, Section::sent);
    column(batch.guard_on_false, guards, Section::sent);
    column(batch.guard_key, guards, Section::sent);
    column(batch.guard_other, guards, Section::sent);
    column(batch.guard_operand, guards, Section::sent);
    column(batch.op_kind, m, Section::sent);
    column(batch.op_operand, m, Section::sent);
    column(batch.op_key, m, Section::sent);
    column(batch.op_value, m, Section::sent);
    column(results.outcome, n, Section::returned);
    column(results.failed_in, n, Section::returned);
    column(results.failed_index, n, Section::returned);
    column(results.rank, n, Section::returned);
    column(results.wrote, n, Section::returned);
    column(results.guard_cell, n, Section::returned);
    column(results.op_cell, m, Section::returned);
    column(results.op_flags, m, Section::returned);
    column(expires, n, Section::sent);
    column(order, shape.positions, Section::sent);
    column(record_of_key, shape.keys, shape.host_records ? Section::sent : Section::scratch);
    column(value_word, shape.values, Section::sent);
    column(equal_begin, shape.values, Section::sent);
    column(equal_end, shape.values, Section::sent);
    column(equal_word, shape.equal_words, Section::sent);
    column(cells, 2 * shape.records, Section::scratch);
  }

  KILOKV_HOST_DEVICE std::uint32_t transaction_at(std::uint32_t position) const {
    return order != nullptr ? order[position] : position;
  }
  // Whether the cell holds the same bytes as this byte value. A cell holds byte values as words that the host gave out.
  // For each value of the batch the host lists the words that have the same content.
  KILOKV_HOST_DEVICE bool bytes_equal(Cell cell, std::uint32_t value) const {
    std::uint32_t low = equal_begin[value];
    std::uint32_t high = equal_end[value];
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      const std::uint64_t word = equal_word[middle];
      if (word == cell.word) return true;
      if (word < cell.word) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return false;
  }
};

// The number of neighbouring positions that a thread gets at once (a tile). A host thread gets neighbours. Lanes of a
// group get one position each, so that the lanes of a group have neighbours. `wanted`: the tile of a host thread; 0:
// automatic, for a fair share.
KILOKV_HOST_DEVICE inline std::uint32_t position_tile(std::uint32_t positions, std::uint32_t threads,
                                                      std::uint32_t group_width, std::uint32_t wanted = 0) {
  if (group_width > 1) return 1;
  if (wanted > 0) return wanted < positions ? wanted : positions;
  const std::uint32_t fair = positions / (4 * threads);
  return fair < 1 ? 1 : (fair > 64 ? 64 : fair);
}

// The number of slots that hold every thread's share of the positions. The i-th position of a thread is in slot thread
// + i x threads.
KILOKV_HOST_DEVICE inline std::uint64_t position_room(std::uint32_t positions, std::uint32_t threads,
                                                      std::uint32_t group_width, std::uint32_t wanted = 0) {
  const std::uint64_t stride = std::uint64_t{position_tile(positions, threads, group_width, wanted)} * threads;
  return (positions + stride - 1) / stride * stride;
}

}  // namespace kilokv::engine
