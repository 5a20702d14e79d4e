// Messages as gRPC carries them. They are parsed and serialized here instead of by gRPC, so that an over-long one is
// measured before it is parsed, a malformed one is refused in our words, a parsed one can live in an arena, and an
// answer's bytes are known before it is queued.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "engine/base/check.hpp"
#include "engine/base/status.hpp"

namespace kilokv::server {

// Whether a message of `bytes` is within --message-bytes-max.
inline Status check_message_bytes(std::uint64_t bytes, std::uint64_t bytes_max) {
  if (bytes <= bytes_max) return {};
  return Status::invalid({.field = "message",
                          .limit = std::to_string(bytes_max) + " bytes",
                          .actual = std::to_string(bytes) + " bytes",
                          .setting = "--message-bytes-max"})
      .because(ErrorReason::message_too_large);
}

// INVALID_ARGUMENT when the bytes are not such a message.
template <class Message>
Status parse_message(grpc::ByteBuffer* buffer, Message* message) {
  grpc::ProtoBufferReader reader(buffer);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return {};
  return Status::invalid(
             {.field = "message", .limit = "a " + message->GetTypeName(), .actual = "malformed bytes", .setting = ""})
      .because(ErrorReason::malformed_message);
}

template <class Message>
grpc::ByteBuffer serialize_message(const Message& message) {
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  const grpc::Status status = grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own_buffer);
  KILOKV_CHECK(status.ok());  // fails only beyond 2 GiB, which the answer limits exclude
  return buffer;
}

}  // namespace kilokv::server
