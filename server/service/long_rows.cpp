#include "server/service/long_rows.hpp"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <cstdint>

namespace kilokv::server {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Transactions that are parsed into one arena.
constexpr std::size_t kArenaBytes = std::size_t{64} << 10;

std::uint32_t tag_of(const google::protobuf::Descriptor* type, const char* field) {
  return WireFormatLite::MakeTag(type->FindFieldByName(field)->number(), WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Parses the transactions one after the other.
class RowsReader {
 public:
  RowsReader(CodedInputStream* input, const DecodeContext& context, engine::TransactionColumns* columns)
      : input_(input), context_(context), builder_(columns, context.secret), arena_(arena_options()) {}

  // Reads one TransactionRows.
  Status read() {
    static const std::uint32_t kTransaction = tag_of(v1::TransactionRows::descriptor(), "transactions");
    std::uint32_t length = 0;
    if (!input_->ReadVarint32(&length)) return malformed_rows();
    const CodedInputStream::Limit limit = input_->PushLimit(static_cast<int>(length));
    while (const std::uint32_t tag = input_->ReadTag()) {
      Status status;
      if (tag == kTransaction) {
        status = read_transaction();
      } else if (!WireFormatLite::SkipField(input_, tag)) {
        status = malformed_rows();
      }
      if (!status.ok()) return status;
    }
    if (!input_->ConsumedEntireMessage() || input_->BytesUntilLimit() != 0) return malformed_rows();
    input_->PopLimit(limit);
    return {};
  }
  std::uint64_t transactions() const { return transactions_; }

 private:
  static google::protobuf::ArenaOptions arena_options() {
    google::protobuf::ArenaOptions options;
    options.start_block_size = options.max_block_size = kArenaBytes;
    return options;
  }
  static Status malformed_rows() { return malformed(v1::TransactionRows::descriptor()); }

  // Those beyond the limit are only counted: the error says how many there are.
  Status read_transaction() {
    std::uint32_t length = 0;
    if (!input_->ReadVarint32(&length) || length > (1u << 30)) return malformed_rows();
    const auto size = static_cast<int>(length);
    const std::uint64_t index = transactions_++;
    if (index >= context_.limits.request_transactions_max) return input_->Skip(size) ? Status() : malformed_rows();
    const void* data = nullptr;
    int there = 0;
    input_->GetDirectBufferPointerInline(&data, &there);
    if (there >= size) {
      Status status = add(data, size, static_cast<int>(index));
      return status.ok() && !input_->Skip(size) ? malformed_rows() : status;
    }
    return input_->ReadString(&pieces_, size) ? add(pieces_.data(), size, static_cast<int>(index)) : malformed_rows();
  }

  Status add(const void* data, int size, int index) {
    if (static_cast<std::uint64_t>(size) > kShortParseBytes / 2) {
      CodedInputStream of_transaction(static_cast<const std::uint8_t*>(data), size);
      const ElementLimits limits{.transactions = context_.limits, .transaction = index};
      Status status = check_elements(&of_transaction, v1::Transaction::descriptor(), limits);
      if (!status.ok()) return status;
    }
    auto* transaction = google::protobuf::Arena::CreateMessage<v1::Transaction>(&arena_);
    if (!transaction->ParseFromArray(data, size)) return malformed_rows();
    Status status = add_row(*transaction, index, &builder_);
    parsed_bytes_ += static_cast<std::size_t>(size) + sizeof(v1::Transaction);
    if (parsed_bytes_ >= kArenaBytes) {
      arena_.Reset();
      parsed_bytes_ = 0;
    }
    return status;
  }

  CodedInputStream* const input_;
  const DecodeContext& context_;
  engine::ColumnsBuilder builder_;
  google::protobuf::Arena arena_;
  std::size_t parsed_bytes_ = 0;  // into the arena
  std::string pieces_;            // a transaction that is not in one piece in the buffer
  std::uint64_t transactions_ = 0;
};

}  // namespace

Status read_long_request(grpc::ByteBuffer* buffer, const google::protobuf::Descriptor* type, LongRequest* request) {
  const std::uint32_t rows = tag_of(type, "rows"), columns = tag_of(type, "columns");
  grpc::ProtoBufferReader reader(buffer);
  if (!reader.status().ok()) return malformed(type);
  CodedInputStream input(&reader);
  google::protobuf::io::StringOutputStream head(&request->head);
  google::protobuf::io::CodedOutputStream output(&head);
  int others = 0;
  while (const std::uint32_t tag = input.ReadTag()) {
    if (tag == rows) {
      request->has_rows = true;
      if (!WireFormatLite::SkipField(&input, tag)) return malformed(type);
      continue;
    }
    if (++others > kOtherFieldsMax) return too_many_fields(type);
    if (tag != columns) {
      if (!WireFormatLite::SkipField(&input, tag, &output)) return malformed(type);
      continue;
    }
    request->has_columns = true;
    std::uint32_t length = 0;
    if (!input.ReadVarint32(&length)) return malformed(type);
    const CodedInputStream::Limit limit = input.PushLimit(static_cast<int>(length));
    const engine::TransactionLimits none{};
    Status status = check_elements(&input, v1::TransactionColumns::descriptor(), {.transactions = none});
    if (!status.ok()) return status;
    if (input.BytesUntilLimit() != 0) return malformed(type);
    input.PopLimit(limit);
  }
  if (!input.ConsumedEntireMessage()) return malformed(type);
  if (!request->has_rows || !request->has_columns) return {};
  return Status::invalid(
             {.field = "transactions", .limit = "rows or columns", .actual = "rows and columns", .setting = ""})
      .because(ErrorReason::not_allowed);
}

Status decode_long_rows(grpc::ByteBuffer* buffer, const google::protobuf::Descriptor* type,
                        const DecodeContext& context, engine::TransactionColumns* columns) {
  const std::uint32_t rows = tag_of(type, "rows");
  grpc::ProtoBufferReader reader(buffer);
  if (!reader.status().ok()) return malformed(type);
  CodedInputStream input(&reader);
  RowsReader transactions(&input, context, columns);
  while (const std::uint32_t tag = input.ReadTag()) {
    if (tag != rows) {
      if (!WireFormatLite::SkipField(&input, tag)) return malformed(type);
      continue;
    }
    if (Status status = transactions.read(); !status.ok()) return status;
  }
  const std::uint64_t most = context.limits.request_transactions_max;
  if (transactions.transactions() > most) {
    return Status::invalid({.field = "transactions",
                            .limit = std::to_string(most) + " transactions",
                            .actual = std::to_string(transactions.transactions()) + " transactions",
                            .setting = "--request-transactions-max"});
  }
  return engine::validate(*columns, context.limits);
}

}  // namespace kilokv::server
