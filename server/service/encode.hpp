// Encoders: results as core visits them, into row or columnar messages.
//
// No message is longer than `message_bytes_max`: what a client receives stays bounded, and within the limit that gRPC
// clients have by default, 4 MiB. Bytes are counted by upper bounds, before anything is written. A transaction is never
// split: one that does not fit behind the others begins the next message; one that does not fit in a message of its own
// keeps the first of its reads and gets `reads_dropped`. Columns that would carry nothing are left out, as
// columns.proto says. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/kilokv.pb.h"
#include "kilokv/v1/transaction.pb.h"
#include "server/core/database_status.hpp"
#include "server/core/reads/scan.hpp"
#include "server/core/request.hpp"
#include "server/core/waiting/parked_transaction.hpp"

namespace kilokv::server {

// Upper bounds of what stands in a message beside keys and values: around the results, for one transaction, for one
// read; in either form.
inline constexpr std::uint64_t kMessageBytesBound = 256;
inline constexpr std::uint64_t kTransactionBytesBound = 96;
inline constexpr std::uint64_t kReadBytesBound = 48;

inline std::uint64_t read_bytes_bound(const ReadValue& value) {
  return kReadBytesBound + value.key.size() + value.bytes.size();
}

void fill_result(const TransactionResult& result, v1::TransactionResult* message);
void fill_read(const ReadValue& value, v1::Read* message);
void fill_page(const ScanPage& page, v1::ScanResponse* message);
// The first `limit` of them, or fewer where the message would be too long; one at least.
void fill_list(const std::vector<ParkedTransaction>& parked, std::uint32_t limit, std::uint64_t message_bytes_max,
               v1::ListParkedResponse* message);
// Every section; of `server` and `checks` what the database knows.
void fill_status(const DatabaseStatus& status, v1::StatusResponse* message);
void add_text(const std::string& name, const std::string& text,
              google::protobuf::RepeatedPtrField<v1::NamedText>* texts);

// Gathers what belongs to one transaction, so that its length is known before it is written.
// Requires: what is visited lives until finish(), as core/request.hpp promises for one call of results().
class ResultsEncoder : public ResultVisitor {
 public:
  void transaction(const TransactionResult& result) final;
  void guard_value(const ReadValue& value) final;
  void read(std::uint32_t operation, const ReadValue& value) final;
  // Writes what is left. Requires: called once, after the last visit.
  void finish();

 protected:
  struct Read {
    std::uint32_t operation;
    ReadValue value;
  };
  struct Transaction {
    TransactionResult result;
    std::optional<ReadValue> guard_value;
    std::vector<Read> reads;
  };

  explicit ResultsEncoder(std::uint64_t message_bytes_max) : bytes_max_(message_bytes_max) {}

  // Whether the message at hand can take results of `batch`.
  virtual bool open_for(BatchNumber batch) const = 0;
  // Ends the message at hand, if there is one, and begins the next.
  virtual void begin_message(const TransactionResult& first) = 0;
  virtual void put(const Transaction& transaction) = 0;
  virtual void end_message() {}

 private:
  bool take(const ReadValue& value);
  void flush();

  const std::uint64_t bytes_max_;
  std::uint64_t message_bytes_ = 0;      // bound, of the message at hand
  std::uint64_t transaction_bytes_ = 0;  // bound, of transaction_
  bool gathering_ = false;
  Transaction transaction_;
};

class RowsEncoder final : public ResultsEncoder {
 public:
  // `next` returns the message that takes the results from here on.
  RowsEncoder(std::function<v1::ResultRows*()> next, std::uint64_t message_bytes_max)
      : ResultsEncoder(message_bytes_max), next_(std::move(next)) {}

 private:
  bool open_for(BatchNumber) const override { return rows_ != nullptr; }
  void begin_message(const TransactionResult&) override { rows_ = next_(); }
  void put(const Transaction& transaction) override;

  std::function<v1::ResultRows*()> next_;
  v1::ResultRows* rows_ = nullptr;
};

class ColumnsEncoder final : public ResultsEncoder {
 public:
  ColumnsEncoder(std::function<v1::ResultColumns*()> next, std::uint64_t message_bytes_max)
      : ResultsEncoder(message_bytes_max), next_(std::move(next)) {}

 private:
  // A message speaks of one batch; what a session has stored can come from several.
  bool open_for(BatchNumber batch) const override { return columns_ != nullptr && columns_->batch() == batch; }
  void begin_message(const TransactionResult& first) override;
  void put(const Transaction& transaction) override;
  void end_message() override;
  void put_result(const TransactionResult& result);

  std::function<v1::ResultColumns*()> next_;
  v1::ResultColumns* columns_ = nullptr;
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
    encoder.finish();
  }
  if (messages.empty()) messages.emplace_back();
  return messages;
}

}  // namespace kilokv::server
