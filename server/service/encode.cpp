#include "server/service/encode.hpp"

namespace kilokv::server {

void ResultsEncoder::transaction(const TransactionResult& result) {
  flush();
  transaction_.result = result;
  transaction_bytes_ = kTransactionBytesBound;
  gathering_ = true;
}

// Whether the transaction still fits in a message of its own with this value. After the first value that does not fit,
// all later values are dropped, so that the values that remain are the first ones.
bool ResultsEncoder::take(const ReadValue& value) {
  TransactionResult& result = transaction_.result;
  const std::uint64_t bytes = transaction_bytes_ + read_bytes_bound(value);
  if (result.reads_dropped || kMessageBytesBound + bytes > bytes_max_) {
    result.reads_dropped = true;
    return false;
  }
  transaction_bytes_ = bytes;
  return true;
}

void ResultsEncoder::guard_value(const ReadValue& value) {
  if (take(value)) transaction_.guard_value = value;
}

void ResultsEncoder::read(std::uint32_t operation, const ReadValue& value) {
  if (take(value)) transaction_.reads.push_back({operation, value});
}

void ResultsEncoder::flush() {
  if (!gathering_) return;
  if (!open_for(transaction_.result.batch) || message_bytes_ + transaction_bytes_ > bytes_max_) {
    begin_message(transaction_.result);
    message_bytes_ = kMessageBytesBound;
  }
  put(transaction_);
  message_bytes_ += transaction_bytes_;
  transaction_.guard_value.reset();
  transaction_.reads.clear();
  gathering_ = false;
}

void ResultsEncoder::finish() {
  flush();
  end_message();
}

}  // namespace kilokv::server
