#include "server/service/encode.hpp"

namespace kilokv::server {
namespace {

void fill_value(ValueType type, std::int64_t integer, std::string_view bytes, v1::Read* message) {
  switch (type) {
    case ValueType::absent: message->mutable_value(); break;
    case ValueType::integer: message->mutable_value()->set_integer(integer); break;
    case ValueType::bytes: message->mutable_value()->set_bytes(bytes.data(), bytes.size()); break;
  }
}

}  // namespace

void fill_result(const TransactionResult& result, v1::TransactionResult* message) {
  message->set_index(result.index);
  message->set_outcome(result.cancelled ? v1::OUTCOME_CANCELLED : static_cast<v1::Outcome>(result.outcome));
  message->set_failed_in(static_cast<v1::FailedIn>(result.failed_in));
  if (result.failed_in != engine::FailedIn::none) message->set_failed_index(result.failed_index);
  message->set_version(result.version.value_or(0));
  message->set_batch(result.batch);
  message->set_rank(result.rank);
  message->set_admitted_batch(result.admitted_batch);
  message->set_batch_time_us(result.batch_time_us);
  message->set_reads_dropped(result.reads_dropped);
}

void fill_read(const ReadValue& value, v1::Read* message) {
  message->set_key(value.key.data(), value.key.size());
  fill_value(value.type, value.integer, value.bytes, message);
  message->set_version(value.version.value_or(0));
  message->set_own_write(!value.version.has_value());
}

void ResultsEncoder::fill_row(const Transaction& transaction, v1::TransactionResult* row) {
  fill_result(transaction.result, row);
  if (transaction.guard_value) fill_read(*transaction.guard_value, row->mutable_guard_value());
  for (const Read& read : transaction.reads) {
    v1::Read* message = row->add_reads();
    message->set_operation(read.operation);
    fill_read(read.value, message);
  }
}

void RowsEncoder::put(const Transaction& transaction) { fill_row(transaction, rows_->add_results()); }

}  // namespace kilokv::server
