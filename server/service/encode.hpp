// Encoders: they turn results, as core visits them, into messages of rows or columns.
//
// No message is longer than `message_bytes_max`. So a client can bound what it receives. The default is the limit that
// gRPC clients have by default, 4 MiB. Before a result is written, its bytes are estimated from above. A transaction is
// never split. If it does not fit into the current message, it begins the next one. If it does not fit into a message
// of its own, it keeps only its first reads and gets `reads_dropped`. Columns without information are left out, as
// columns.proto says. Thread safety: one thread at a time.
#pragma once

#include <google/protobuf/arena.h>

#include <cstdint>
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
#include "server/service/message_buffer.hpp"

namespace kilokv::server {

// Upper bounds of the bytes in a message that are neither keys nor values, in both forms: those around the results,
// those of one transaction, and those of one read.
inline constexpr std::uint64_t kMessageBytesBound = 256;
inline constexpr std::uint64_t kTransactionBytesBound = 96;
inline constexpr std::uint64_t kReadBytesBound = 48;

inline std::uint64_t read_bytes_bound(const ReadValue& value) {
  return kReadBytesBound + value.key.size() + value.bytes.size();
}

void fill_result(const TransactionResult& result, v1::TransactionResult* message);
void fill_read(const ReadValue& value, v1::Read* message);
void fill_page(const ScanPage& page, v1::ScanResponse* message);
// Lists all transactions of the page, or fewer if the message would be too long, but at least one.
void fill_list(const ParkedPage& page, std::uint64_t message_bytes_max, v1::ListParkedResponse* message);
// Fills every section. In `server` and `checks` it fills only the fields that the database knows.
void fill_status(const DatabaseStatus& status, v1::StatusResponse* message);
void add_text(const std::string& name, const std::string& text,
              google::protobuf::RepeatedPtrField<v1::NamedText>* texts);

// Collects all parts of one transaction, so that their length is known before they are written.
// Requires: the visited values live until finish(). core/request.hpp promises this for one call of results().
class ResultsEncoder : public ResultVisitor {
 public:
  void transaction(const TransactionResult& result) final;
  void guard_value(const ReadValue& value) final;
  void read(std::uint32_t operation, const ReadValue& value) final;
  // Writes the last transaction. Requires: called once, after the last visit.
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

  // Writes the last transaction that was visited.
  void flush();
  // The upper bound for the current message. The subclass may put more into the message.
  std::uint64_t message_bytes() const { return message_bytes_; }
  void add_bytes(std::uint64_t bytes) { message_bytes_ += bytes; }
  static void fill_row(const Transaction& transaction, v1::TransactionResult* row);

  // Whether the current message can take results of `batch`.
  virtual bool open_for(BatchNumber batch) const = 0;
  // Ends the current message, if there is one, and begins the next.
  virtual void begin_message(const TransactionResult& first) = 0;
  virtual void put(const Transaction& transaction) = 0;
  virtual void end_message() {}

 private:
  bool take(const ReadValue& value);

  const std::uint64_t bytes_max_;
  std::uint64_t message_bytes_ = 0;      // upper bound for the current message
  std::uint64_t transaction_bytes_ = 0;  // upper bound for transaction_
  bool gathering_ = false;
  Transaction transaction_;
};

class RowsEncoder final : public ResultsEncoder {
 public:
  // `next` returns the message that takes the next results.
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
  // All results in a message are of one batch. The stored results of a session can be of several batches.
  bool open_for(BatchNumber batch) const override { return columns_ != nullptr && columns_->batch() == batch; }
  void begin_message(const TransactionResult& first) override;
  void put(const Transaction& transaction) override;
  void end_message() override;
  void put_result(const TransactionResult& result);

  std::function<v1::ResultColumns*()> next_;
  v1::ResultColumns* columns_ = nullptr;
  // Whether the current message needs a column that can be left out.
  bool has_index_ = false, has_wrote_ = false, has_admitted_ = false, has_failed_ = false, has_dropped_ = false;
};

// Encodes the results of `slice` as messages of type Response (ExecuteBatchResponse or SessionResponse), at least one.
// Passes each message, when it is complete, to `emit`, a function from (Response*, bool is_last_of_slice). So only one
// message is in memory at a time. The message is valid during the call.
template <class Response, class Emit>
void encode_slice(const ResultSlice& slice, bool as_columns, std::uint64_t message_bytes_max, const Emit& emit) {
  constexpr std::uint64_t kResultBytes = 128;  // of one result in a message, about
  google::protobuf::Arena arena(arena_for(slice.size() * kResultBytes));
  Response* message = nullptr;
  const auto next = [&] {
    if (message != nullptr) {
      emit(message, false);
      arena.Reset();
    }
    return message = google::protobuf::Arena::CreateMessage<Response>(&arena);
  };
  if (as_columns) {
    ColumnsEncoder encoder([&] { return next()->mutable_columns(); }, message_bytes_max);
    slice.visit(&encoder);
    encoder.finish();
  } else {
    RowsEncoder encoder([&] { return next()->mutable_rows(); }, message_bytes_max);
    slice.visit(&encoder);
    encoder.finish();
  }
  if (message == nullptr) next();
  emit(message, true);
}

}  // namespace kilokv::server
