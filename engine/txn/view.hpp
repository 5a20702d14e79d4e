// A batch and its results as pointers: the form that an interpreter gets on any platform. Trivially copyable. Shapes
// and meanings are those of txn/columns.hpp and txn/results.hpp. Requires: the owner of the columns does not move or
// free them during the run.
// Thread safety: plain data.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// A batch in the memory of `Space` (platform/concept.hpp).
template <class Space>
struct BatchViewIn {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;

  std::uint32_t size = 0;  // transactions
  Version first_version = 1;
  TimeUs time_us = 0;
  Version tombstone_floor = 0;
  Pointer<const std::uint32_t> guard_end = {};
  Pointer<const std::uint32_t> then_end = {};
  Pointer<const std::uint32_t> else_end = {};
  Pointer<const std::uint8_t> guard_kind = {};
  Pointer<const std::uint8_t> guard_on_false = {};
  Pointer<const std::uint32_t> guard_key = {};
  Pointer<const std::uint32_t> guard_other = {};
  Pointer<const std::int64_t> guard_operand = {};
  Pointer<const std::uint8_t> op_kind = {};
  Pointer<const std::uint8_t> op_operand = {};
  Pointer<const std::uint32_t> op_key = {};
  Pointer<const std::int64_t> op_value = {};
};

template <class Space>
struct ResultViewIn {
  template <class T>
  using Pointer = typename Space::template Pointer<T>;

  Pointer<std::uint8_t> outcome = {};
  Pointer<std::uint8_t> failed_in = {};
  Pointer<std::uint32_t> failed_index = {};
  Pointer<std::uint32_t> rank = {};
  Pointer<std::uint8_t> wrote = {};
  Pointer<Cell> guard_cell = {};
  Pointer<Cell> op_cell = {};
  Pointer<std::uint8_t> op_flags = {};
};

using BatchView = BatchViewIn<HostSpace>;
using ResultView = ResultViewIn<HostSpace>;

inline BatchView view_of(const BatchHeader& header, const TransactionColumns& c, Version tombstone_floor) {
  return {static_cast<std::uint32_t>(c.size()),
          header.first_version,
          header.time_us,
          tombstone_floor,
          c.guard_end.data(),
          c.then_end.data(),
          c.else_end.data(),
          c.guard_kind.data(),
          c.guard_on_false.data(),
          c.guard_key.data(),
          c.guard_other.data(),
          c.guard_operand.data(),
          c.op_kind.data(),
          c.op_operand.data(),
          c.op_key.data(),
          c.op_value.data()};
}

inline ResultView view_of(BatchResults* r) {
  return {r->outcome.data(), r->failed_in.data(),  r->failed_index.data(), r->rank.data(),
          r->wrote.data(),   r->guard_cell.data(), r->op_cell.data(),      r->op_flags.data()};
}

}  // namespace kilokv::engine
