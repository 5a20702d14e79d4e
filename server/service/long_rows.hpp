// Requests with many transactions as rows. A long one is not parsed as a whole, because a parsed row takes many times
// its bytes: each transaction is parsed and decoded alone, and then forgotten. So the memory of the parse is that of a
// few transactions, whatever the message holds. A short message is parsed at once.
//
// Thread safety: pure functions.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "server/service/decode.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/message_elements.hpp"

namespace kilokv::server {

// What a long message has beside its rows.
struct LongRequest {
  std::string head;  // the fields that are neither rows nor columns
  bool has_rows = false, has_columns = false;
};
// Requires: `type` is one with rows and columns. Errors: those of check_elements for all but the rows, and
// INVALID_ARGUMENT if there are rows and columns.
Status read_long_request(grpc::ByteBuffer* buffer, const google::protobuf::Descriptor* type, LongRequest* request);

// As parse_message, for ExecuteBatchRequest and SessionRequest. Sets *rows_left if the rows were not parsed: they are
// for decode_long_rows().
template <class Message>
Status parse_request(grpc::ByteBuffer* buffer, std::uint64_t bytes_max, Message* message, bool* rows_left) {
  *rows_left = false;
  if (buffer->Length() <= kShortParseBytes || buffer->Length() > bytes_max) {
    return parse_message(buffer, bytes_max, message);
  }
  LongRequest request;
  if (Status status = read_long_request(buffer, Message::descriptor(), &request); !status.ok()) return status;
  if (request.has_columns) return parse_message(buffer, bytes_max, message);
  if (!message->ParseFromString(request.head)) return malformed(Message::descriptor());
  if (request.has_rows) message->mutable_rows();
  *rows_left = request.has_rows;
  return {};
}

// Decodes the rows of a message of this type. Errors: those of decode(), and INVALID_ARGUMENT for malformed bytes.
// Requires: `columns` is empty.
Status decode_long_rows(grpc::ByteBuffer* buffer, const google::protobuf::Descriptor* type,
                        const DecodeContext& context, engine::TransactionColumns* columns);

// Decodes the transactions of a message that parse_request() parsed.
template <class Message>
Status decode_request(const Message& message, bool rows_left, grpc::ByteBuffer* buffer, const DecodeContext& context,
                      engine::TransactionColumns* columns) {
  if (rows_left) return decode_long_rows(buffer, Message::descriptor(), context, columns);
  return decode_transactions(message, context, columns);
}

}  // namespace kilokv::server
