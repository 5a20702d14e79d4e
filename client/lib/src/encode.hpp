// A batch as messages and bytes. In a session the transactions of a request are encoded once, as one length-delimited
// field, and kept in a reference-counted slice; the small fields beside them (number, session, acknowledgement) are
// encoded for each send and put in front: concatenated encodings are one message.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <google/protobuf/message_lite.h>

#include "kilokv/client.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::client {

// What Error says when the batch was misused, is still open or is empty.
Error check_batch(const Batch& batch);

// How long its transactions may wait on the server: the longest wait_timeout of one with a WAIT guard. Microseconds.
std::uint64_t longest_wait_us(const Batch& batch);

// Fills a request message that is sent by itself, without the first `guards_skipped` guards. Requires, here and below:
// check_batch passed.
void fill_transaction(const Batch& batch, int t, v1::Transaction* out, std::uint32_t guards_skipped = 0);
void fill_transactions(const Batch& batch, Encoding encoding, v1::ExecuteBatchRequest* out);

// The `transactions` field of a SessionRequest.
grpc::Slice encode_transactions(const Batch& batch, Encoding encoding);

// The message whose small fields are `head` and whose transactions are `payload`.
grpc::ByteBuffer join(const google::protobuf::MessageLite& head, const grpc::Slice& payload);

}  // namespace kilokv::client
