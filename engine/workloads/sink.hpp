// Where a generator writes its transactions. It has the shape of engine::ColumnsBuilder, so that generators fill the
// columns of the engine and the batch of the network client directly, with no object for each transaction between.
//
// Protocol, for each transaction: begin, then its guards, then its then-operations, optionally begin_else and its
// else-operations, then end. key() and value() may be called anywhere between begin and end. The index that they return
// is used no longer than until end. The bytes passed to them stay valid until end.
// Thread safety: that of the sink.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "engine/base/types.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

template <class S>
concept TransactionSink = requires(S& sink, std::uint8_t precedence, DurationUs wait_timeout_us, std::string_view bytes,
                                   GuardKind guard, OnFalse on_false, std::uint32_t index, std::int64_t value,
                                   Version version, OpKind op, Operand operand, bool expire_runs_else) {
  sink.begin(precedence, wait_timeout_us);
  sink.begin(precedence, wait_timeout_us, expire_runs_else);
  { sink.key(bytes) } -> std::same_as<std::uint32_t>;
  { sink.value(bytes) } -> std::same_as<std::uint32_t>;
  sink.guard(guard, on_false, index, value, index);  // key, operand, other key or kNone
  sink.range_guard(guard, on_false, bytes, bytes, version);
  sink.op(op, index, operand, value);
  sink.range_op(op, bytes, bytes, index);
  sink.begin_else();
  sink.end();
};

}  // namespace kilokv::engine
