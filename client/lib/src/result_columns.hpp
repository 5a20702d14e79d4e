// What Results holds: the answers of the server as they came, and for each transaction where its answer stands.
// Invariants: place[i] is kUnanswered, or names a slice and a position in it that add() has checked; the first answer
// of a transaction stays, a repeated one (after a reconnect) is dropped.
// Thread safety: none while add() runs; const calls from any thread after it.
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

// One slice of columnar results, with the positions that its packed columns leave implicit.
struct ColumnsSlice {
  std::unique_ptr<v1::ResultColumns> message;
  std::vector<std::uint32_t> guard_value;        // of transaction i: index into guard_values or kNoRead
  std::vector<std::uint32_t> guard_value_bytes;  // of guard value i: index into its byte values
  std::vector<std::uint32_t> read_bytes;         // of read i: index into its byte values
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
  std::vector<Place> place;  // of each transaction; slice kUnanswered: no answer yet
  std::size_t answered = 0;

  void reset(std::size_t transactions);
  bool complete() const { return answered == place.size(); }
  // Takes a slice. Appends the transactions that are answered by it for the first time to `fresh`. A malformed one is
  // dropped whole: an internal error.
  Error add(std::unique_ptr<v1::ResultColumns> message, std::vector<std::uint32_t>* fresh);
  Error add(std::unique_ptr<v1::ResultRows> message, std::vector<std::uint32_t>* fresh);

 private:
  void take(std::uint32_t index, std::uint32_t position, std::vector<std::uint32_t>* fresh);
};

}  // namespace kilokv::client
