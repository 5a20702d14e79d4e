// The results of a batch, as columns that belong to the batch's own columns (txn/columns.hpp). Thread safety: none.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <string_view>

#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

// The inputs of a batch beside its transactions. They are recorded with the batch, because the same inputs give the
// same results, bit for bit.
struct BatchHeader {
  BatchNumber number = 0;
  TimeUs time_us = 0;         // the stamp of the batch
  Version first_version = 1;  // version of rank 0
};

struct BatchResults {
  explicit BatchResults(std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  // [n], in the order of the transactions in the columns
  Column<std::uint8_t> outcome;        // Outcome
  Column<std::uint8_t> failed_in;      // FailedIn
  Column<std::uint32_t> failed_index;  // within its list; kNone where nothing failed
  // pass x n + position. WAIT_EXPIRED: passes x n + position, where `passes` does not count the pass of last tries.
  Column<std::uint32_t> rank;
  Column<std::uint8_t> wrote;  // 1: it wrote, and its commit version is first_version + rank
  // GUARD_FAILED, WAIT_EXPIRED and postponed: the deciding guard's key as that guard saw it (zero for a range guard).
  Column<Cell> guard_cell;
  // [m]. GET: the value read, with its version; kOwnWrite is set if it is the transaction's own earlier write. PUT,
  // DELETE, ADD that ran: the cell after it (for a DELETE or PUT that wrote nothing: the cell as it was). Unspecified
  // for operations of a list that did not run, or that was undone.
  Column<Cell> op_cell;
  Column<std::uint8_t> op_flags;  // kOwnWrite, kWrote
  // [r]. Range i returned (RANGE_GET) or deleted (DELETE_RANGE) pairs [range_begin[i], range_end[i]) of the pair
  // columns.
  Column<std::uint32_t> range_begin;
  Column<std::uint32_t> range_end;
  // [pairs]
  Column<std::uint32_t> pair_key_end;  // pair i has key bytes [pair_key_end[i-1], pair_key_end[i]) of pair_key_bytes
  Column<char> pair_key_bytes;
  Column<Cell> pair_cell;           // DELETE_RANGE: the cell before it was deleted
  Column<std::uint8_t> pair_flags;  // kOwnWrite

  // Passes that ran, that of last tries included (stm/serial.hpp). At least 1 for a batch that is not empty.
  std::uint32_t passes = 0;
  Version next_version = 1;  // the first version of the next batch: first_version + passes x n

  static constexpr std::uint8_t kOwnWrite = 1;  // the cell is the transaction's own write: clients see no version
  static constexpr std::uint8_t kWrote = 2;     // this operation wrote
  static constexpr std::uint8_t kDelta = 4;     // inside the engine only: an ADD whose cell is still the delta

  void reset(const TransactionColumns& columns);  // sizes every column for a batch; keeps capacity
  std::string_view pair_key(std::size_t i) const;
};

// All writes of a batch, in rank order, and within a transaction in the order of its operations. The log carries these
// columns: replaying them in this order over the state before the batch gives the state after it.
struct WriteColumns {
  explicit WriteColumns(std::pmr::memory_resource* memory = std::pmr::get_default_resource());

  Column<std::uint32_t> rank;     // version = first_version + rank
  Column<std::uint8_t> type;      // ValueType; absent: a delete
  Column<std::int64_t> word;      // integer: the value; else 0
  Column<std::uint32_t> key_end;  // key i has bytes [key_end[i-1], key_end[i]) of key_bytes
  Column<char> key_bytes;
  Column<std::uint32_t> value_end;  // one per write of type bytes, in order
  Column<char> value_bytes;
  // One for each write after which its key has an expiry, in order. After every other write it has none.
  Column<std::uint32_t> expiry_write;  // index of the write
  Column<TimeUs> expires_us;           // when the key expires; at least 1

  std::size_t size() const { return rank.size(); }
  void clear();
  std::string_view key(std::size_t i) const;
};

}  // namespace kilokv::engine
