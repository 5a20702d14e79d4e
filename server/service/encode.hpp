// Encoders: results as core visits them, into row or columnar messages.
//
// A message is filled up to about `message_bytes_max` and then the next one is asked for, so that what a client
// receives stays bounded; only the reads of one single transaction can make it larger. A transaction whose reads go
// beyond kReadsSlack times that gets no more of them and `reads_dropped`: a message of gRPC cannot hold 2 GiB. Columns
// that would carry nothing are left out, as columns.proto says.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/kilokv.pb.h"
#include "kilokv/v1/transaction.pb.h"
#include "server/core/database.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {

inline constexpr std::uint64_t kReadsSlack = 16;

void fill_result(const TransactionResult& result, v1::TransactionResult* message);
void fill_read(const ReadValue& value, v1::Read* message);
void fill_page(const ScanPage& page, v1::ScanResponse* message);
void fill_parked(const ParkedTransaction& parked, v1::ParkedTransaction* message);
void fill_status(const DatabaseStatus& status, v1::StatusResponse* message);

class RowsEncoder final : public ResultVisitor {
 public:
  // `next` returns the message that takes the results from here on.
  RowsEncoder(std::function<v1::ResultRows*()> next, std::uint64_t message_bytes_max);
  void transaction(const TransactionResult& result) override;
  void guard_value(const ReadValue& value) override;
  void read(std::uint32_t operation, const ReadValue& value) override;

 private:
  std::function<v1::ResultRows*()> next_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;              // about what rows_ holds
  std::uint64_t transaction_begin_ = 0;  // bytes_ before the reads of the transaction at hand
  v1::ResultRows* rows_ = nullptr;
  v1::TransactionResult* result_ = nullptr;
};

class ColumnsEncoder final : public ResultVisitor {
 public:
  ColumnsEncoder(std::function<v1::ResultColumns*()> next, std::uint64_t message_bytes_max);
  void transaction(const TransactionResult& result) override;
  void guard_value(const ReadValue& value) override;
  void read(std::uint32_t operation, const ReadValue& value) override;
  // Leaves out what carries nothing. Requires: called once, after the last visit.
  void finish();

 private:
  void open(const TransactionResult& first);
  void close();
  // Keeps guard_values in step with the transactions: an empty one where a guard decided and there is nothing to show.
  void settle_guard_value();

  std::function<v1::ResultColumns*()> next_;
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;              // about what columns_ holds
  std::uint64_t transaction_begin_ = 0;  // bytes_ before the reads of the transaction at hand
  v1::ResultColumns* columns_ = nullptr;
  bool guard_value_due_ = false;  // the transaction at hand was decided by a guard, its value has not come
  // Whether a column that may be left out carries something in the message at hand.
  bool has_index_ = false, has_wrote_ = false, has_admitted_ = false, has_failed_ = false, has_dropped_ = false;
};

// The results of `slice` as messages of type Response (ExecuteBatchResponse or SessionResponse), at least one.
template <class Response>
std::deque<Response> encode_slice(const ResultSlice& slice, bool as_columns, std::uint64_t message_bytes_max) {
  std::deque<Response> messages;
  if (as_columns) {
    ColumnsEncoder encoder([&] { return messages.emplace_back().mutable_columns(); }, message_bytes_max);
    slice.visit(&encoder);
    encoder.finish();
  } else {
    RowsEncoder encoder([&] { return messages.emplace_back().mutable_rows(); }, message_bytes_max);
    slice.visit(&encoder);
  }
  if (messages.empty()) messages.emplace_back();
  return messages;
}

}  // namespace kilokv::server
