#include "server/core/pipeline/live_results.hpp"

#include "engine/base/check.hpp"
#include "engine/txn/kinds.hpp"

namespace kilokv::server {

using engine::BatchResults;
using engine::FailedIn;
using engine::GuardKind;
using engine::OpKind;
using engine::Outcome;
using engine::TransactionColumns;

LiveSlice::LiveSlice(const ExecutedBatch& batch, std::uint32_t begin, std::uint32_t end, std::uint32_t first_index)
    : batch_(batch), begin_(begin), first_index_(first_index), size_(end - begin) {}

LiveSlice::LiveSlice(const ExecutedBatch& batch, std::span<const LiveItem> items)
    : batch_(batch), items_(items), size_(static_cast<std::uint32_t>(items.size())) {}

LiveItem LiveSlice::item(std::uint32_t i) const {
  if (!items_.empty()) {
    return items_[i];
  }
  return {begin_ + i, first_index_ + i, batch_.header.number, false};
}

void LiveSlice::visit(ResultVisitor* visitor) const {
  for (std::uint32_t i = 0; i < size_; ++i) {
    visit_item(item(i), visitor);
  }
}

void LiveSlice::visit_item(const LiveItem& item, ResultVisitor* visitor) const {
  TransactionResult result;
  result.index = item.index;
  result.batch = batch_.header.number;
  result.admitted_batch = item.admitted_batch;
  result.batch_time_us = batch_.header.time_us;
  if (item.cancelled) {
    result.cancelled = true;
    visitor->transaction(result);
    return;
  }
  const TransactionColumns& columns = *batch_.columns;
  const BatchResults& results = *batch_.results;
  const std::uint32_t t = item.transaction;
  result.outcome = static_cast<Outcome>(results.outcome[t]);
  KILOKV_CHECK(result.outcome != Outcome::undecided && result.outcome != Outcome::postponed);
  result.failed_in = static_cast<FailedIn>(results.failed_in[t]);
  result.failed_index = results.failed_index[t];
  result.rank = results.rank[t];
  if (results.wrote[t] != 0) {
    result.version = batch_.header.first_version + result.rank;
  }
  visitor->transaction(result);
  if (result.outcome == Outcome::committed) {
    visit_reads(columns.then_begin(t), columns.then_end[t], visitor);
  } else if (result.outcome == Outcome::guard_failed || result.outcome == Outcome::wait_expired) {
    visit_guard_value(t, visitor);
    if (columns.ran_else(t, result.outcome)) visit_reads(columns.then_end[t], columns.else_end[t], visitor);
  }
}

void LiveSlice::visit_guard_value(std::uint32_t transaction, ResultVisitor* visitor) const {
  const TransactionColumns& columns = *batch_.columns;
  const std::uint32_t guard = columns.guard_begin(transaction) + batch_.results->failed_index[transaction];
  if (uses_range(static_cast<GuardKind>(columns.guard_kind[guard]))) {
    return;  // a range guard has no single key
  }
  if (columns.guard_key[guard] == engine::kNone) return;
  visitor->guard_value(value_of(columns.key_of_guard(guard), batch_.results->guard_cell[transaction]));
}

void LiveSlice::visit_reads(std::uint32_t begin, std::uint32_t end, ResultVisitor* visitor) const {
  const TransactionColumns& columns = *batch_.columns;
  const BatchResults& results = *batch_.results;
  for (std::uint32_t m = begin; m < end; ++m) {
    const auto kind = static_cast<OpKind>(columns.op_kind[m]);
    if (!returns_values(kind)) {
      continue;
    }
    if (uses_range(kind)) {
      visit_range(m - begin, columns.op_key[m], visitor);
    } else {
      ReadValue value = value_of(columns.key(columns.op_key[m]), results.op_cell[m]);
      if ((results.op_flags[m] & BatchResults::kOwnWrite) != 0) {
        value.version.reset();
      }
      visitor->read(m - begin, value);
    }
  }
}

void LiveSlice::visit_range(std::uint32_t operation, std::uint32_t range, ResultVisitor* visitor) const {
  const BatchResults& results = *batch_.results;
  for (std::uint32_t pair = results.range_begin[range]; pair < results.range_end[range]; ++pair) {
    ReadValue value = value_of(results.pair_key(pair), results.pair_cell[pair]);
    if ((results.pair_flags[pair] & BatchResults::kOwnWrite) != 0) {
      value.version.reset();
    }
    visitor->read(operation, value);
  }
}

ReadValue LiveSlice::value_of(std::string_view key, Cell cell) const {
  ReadValue value{key, type_of(cell.tag), 0, {}, version_of(cell.tag)};
  if (value.type == ValueType::integer) {
    value.integer = static_cast<std::int64_t>(cell.word);
  } else if (value.type == ValueType::bytes) {
    value.bytes = batch_.engine->bytes_of(cell);
  }
  return value;
}

}  // namespace kilokv::server
