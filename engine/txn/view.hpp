// A batch and its results as raw pointers: what an interpreter, on any platform, is given. Trivially copyable; shapes
// and meanings are those of txn/columns.hpp and txn/results.hpp. The owner of the columns keeps them in place
// meanwhile.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

struct BatchView {
  std::uint32_t size = 0;  // transactions
  Version first_version = 1;
  TimeUs time_us = 0;
  Version tombstone_floor = 0;
  const std::uint32_t* guard_end = nullptr;
  const std::uint32_t* then_end = nullptr;
  const std::uint32_t* else_end = nullptr;
  const std::uint8_t* guard_kind = nullptr;
  const std::uint8_t* guard_on_false = nullptr;
  const std::uint32_t* guard_key = nullptr;
  const std::uint32_t* guard_other = nullptr;
  const std::int64_t* guard_operand = nullptr;
  const std::uint8_t* op_kind = nullptr;
  const std::uint8_t* op_operand = nullptr;
  const std::uint32_t* op_key = nullptr;
  const std::int64_t* op_value = nullptr;
};

struct ResultView {
  std::uint8_t* outcome = nullptr;
  std::uint8_t* failed_in = nullptr;
  std::uint32_t* failed_index = nullptr;
  std::uint32_t* rank = nullptr;
  std::uint8_t* wrote = nullptr;
  Cell* guard_cell = nullptr;
  Cell* op_cell = nullptr;
  std::uint8_t* op_flags = nullptr;
};

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
