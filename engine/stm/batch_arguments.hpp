// What every parallel strategy is given of a batch: its columns, its results, and its records, each once
// (exec/resolve/batch_records.hpp). Trivially copyable. With n transactions, k keys, v byte values and d records:
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
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
  Pointer<const std::uint32_t> order = {};          // [n] position -> transaction, or null: the same
  Pointer<const std::uint32_t> record_of_key = {};  // [k] key -> record
  Pointer<const std::uint64_t> value_word = {};     // [v]
  Pointer<const std::uint32_t> equal_begin = {};    // [v] byte value i equals those of the words
  Pointer<const std::uint32_t> equal_end = {};      // [v]   [equal_begin[i], equal_end[i])
  Pointer<const std::uint64_t> equal_word = {};     // ascending for each value
  Pointer<std::uint64_t> cells = {};                // [2d] word and tag; in: before the batch, out: behind it
  std::uint32_t absent_record = kNone;              // the record of all keys that are only read and not there

  KILOKV_HOST_DEVICE std::uint32_t transaction_at(std::uint32_t position) const {
    return order != nullptr ? order[position] : position;
  }
  // Byte values are words that the host gave out; it also says which of those in this batch have which content.
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

// Positions are dealt in tiles, so that a host thread has neighbours and a group's lanes have neighbours, too.
// `wanted`: so many in a tile of a host thread (0: as is fair).
KILOKV_HOST_DEVICE inline std::uint32_t position_tile(std::uint32_t positions, std::uint32_t threads,
                                                      std::uint32_t group_width, std::uint32_t wanted = 0) {
  if (group_width > 1) return 1;
  if (wanted > 0) return wanted < positions ? wanted : positions;
  const std::uint32_t fair = positions / (4 * threads);
  return fair < 1 ? 1 : (fair > 64 ? 64 : fair);
}

// Slots for every thread's share of so many positions: a thread's i-th is in slot thread + i x threads.
KILOKV_HOST_DEVICE inline std::uint64_t position_room(std::uint32_t positions, std::uint32_t threads,
                                                      std::uint32_t group_width, std::uint32_t wanted = 0) {
  const std::uint64_t stride = std::uint64_t{position_tile(positions, threads, group_width, wanted)} * threads;
  return (positions + stride - 1) / stride * stride;
}

}  // namespace kilokv::engine
