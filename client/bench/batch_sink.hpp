// Lets the generators of engine/workloads write into a batch of the network client (engine/workloads/sink.hpp states
// the protocol). A client batch has no index for byte values, or for operands that name an operation. So value() keeps
// the bytes until end(), and op() keeps the operations of the list.
//
// Thread safety: none. It holds no transaction itself: each call goes to the batch.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/workloads/sink.hpp"
#include "kilokv/batch.hpp"

namespace kilokv::bench {

class BatchSink {
 public:
  explicit BatchSink(client::Batch* batch) : batch_(batch) {}

  void begin(std::uint8_t precedence, DurationUs wait_timeout_us, bool expire_runs_else = false) {
    values_.clear();
    batch_->begin({.precedence = precedence,
                   .wait_timeout_us = static_cast<std::uint64_t>(wait_timeout_us),
                   .expire_runs_else = expire_runs_else});
  }
  std::uint32_t key(std::string_view bytes) { return static_cast<std::uint32_t>(batch_->key(bytes)); }
  std::uint32_t value(std::string_view bytes) {
    values_.push_back(bytes);
    return static_cast<std::uint32_t>(values_.size() - 1);
  }
  void guard(engine::GuardKind kind, engine::OnFalse on_false, std::uint32_t key, std::int64_t operand,
             std::uint32_t other = engine::kNone);
  void range_guard(engine::GuardKind kind, engine::OnFalse on_false, std::string_view from, std::string_view to,
                   Version version);
  void op(engine::OpKind kind, std::uint32_t key, engine::Operand operand = engine::Operand::integer,
          std::int64_t value = 0);
  void range_op(engine::OpKind kind, std::string_view from, std::string_view to, std::uint32_t limit);
  void begin_else() { batch_->otherwise(); }
  void end() { batch_->end(); }

 private:
  client::Operand operand_of(engine::Operand operand, std::int64_t value) const;

  client::Batch* batch_;
  std::vector<std::string_view> values_;  // of the open transaction
};

static_assert(engine::TransactionSink<BatchSink>);

}  // namespace kilokv::bench
