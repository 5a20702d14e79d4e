// Encodes a batch as messages and bytes. In a session, the transactions of a request are encoded once, as one
// length-delimited field, and kept in a reference-counted slice. The small fields (number, session, acknowledgement)
// are encoded for each send, and put before the slice. This is allowed, because concatenated encodings are one message.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <google/protobuf/message_lite.h>

#include "kilokv/client.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::client {

// Returns an Error if the batch was misused, if its last transaction has no end(), or if it is empty.
Error check_batch(const Batch& batch);

// The longest wait_timeout of a transaction with a WAIT guard, in microseconds. So long the batch may wait on the
// server.
std::uint64_t longest_wait_us(const Batch& batch);

// Fills the row message of transaction t, without the first `guards_skipped` guards. Requires, here and below:
// check_batch() returned no error.
void fill_transaction(const Batch& batch, int t, v1::Transaction* out, std::uint32_t guards_skipped = 0);
void fill_transactions(const Batch& batch, Encoding encoding, v1::ExecuteBatchRequest* out);

// Encodes the `transactions` field of a SessionRequest.
grpc::Slice encode_transactions(const Batch& batch, Encoding encoding);

// Joins the small fields in `head` and the transactions in `payload` into one message.
grpc::ByteBuffer join(const google::protobuf::MessageLite& head, const grpc::Slice& payload);

}  // namespace kilokv::client
