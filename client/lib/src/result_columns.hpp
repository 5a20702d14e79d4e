// The contents of Results: the answers of the server as they came, and for each transaction the place of its answer.
// Invariants: place[i] is kUnanswered, or names a slice and a position in it that add() has checked. The first answer
// of a transaction is kept. A repeated answer, after a reconnect, is dropped. Thread safety: none while add() runs.
// After that, any thread may make const calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "kilokv/error.hpp"
#include "kilokv/results.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::client {

// One slice of columnar results, with the positions of values in its packed columns.
struct ColumnsSlice {
  std::unique_ptr<v1::ResultColumns> message;
  std::vector<std::uint32_t> guard_value;        // for transaction i: its index in guard_values, or kNoRead
  std::vector<std::uint32_t> guard_value_bytes;  // for guard value i: its index in the byte values
  std::vector<std::uint32_t> read_bytes;         // for read i: its index in the byte values
};
using RowsSlice = std::unique_ptr<v1::ResultRows>;

inline constexpr std::uint32_t kNoRead = 0xFFFFFFFFu;

struct Results::Columns {
  struct Place {
    std::uint32_t slice;
    std::uint32_t position;
  };
  static constexpr std::uint32_t kUnanswered = 0xFFFFFFFFu;

  std::vector<std::variant<ColumnsSlice, RowsSlice>> slices;
  std::vector<Place> place;  // one for each transaction; slice kUnanswered: no answer yet
  std::size_t answered = 0;

  void reset(std::size_t transactions);
  bool complete() const { return answered == place.size(); }
  // Adds a slice. Appends to `fresh` the transactions that had no answer before. A malformed slice is dropped
  // completely, and the error is `internal`.
  Error add(std::unique_ptr<v1::ResultColumns> message, std::vector<std::uint32_t>* fresh);
  Error add(std::unique_ptr<v1::ResultRows> message, std::vector<std::uint32_t>* fresh);

 private:
  void take(std::uint32_t index, std::uint32_t position, std::vector<std::uint32_t>* fresh);
};

}  // namespace kilokv::client
