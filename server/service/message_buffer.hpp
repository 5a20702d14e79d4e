// Messages as bytes. This file parses and serializes them instead of gRPC, for four reasons. A message that is too long
// is found before it is parsed. A malformed message is refused with our own error. A parsed message can be in an arena.
// The bytes of an answer are known before it is queued.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/check.hpp"
#include "engine/base/status.hpp"
#include "server/service/message_elements.hpp"

namespace kilokv::server {

// A call ended its side without a message.
inline Status no_message() {
  return Status(StatusCode::invalid_argument, "message: the call has none")
      .because(ErrorReason::missing_field)
      .as_not_run();
}

// Checks that a message of `bytes` is within a limit. `setting`: empty if the limit has none.
inline Status check_message_bytes(std::uint64_t bytes, std::uint64_t bytes_max,
                                  const char* setting = "--message-bytes-max") {
  if (bytes <= bytes_max) return {};
  return Status::invalid({.field = "message",
                          .limit = std::to_string(bytes_max) + " bytes",
                          .actual = std::to_string(bytes) + " bytes",
                          .setting = setting})
      .because(ErrorReason::message_too_large);
}

// INVALID_ARGUMENT if the message is longer than `bytes_max`, or if the bytes are not a message of this type. The
// length is checked first, because a parsed message can take many times the memory of its bytes.
template <class Message>
Status parse_message(grpc::ByteBuffer* buffer, std::uint64_t bytes_max, Message* message) {
  if (Status status = check_message_bytes(buffer->Length(), bytes_max); !status.ok()) return status;
  grpc::ProtoBufferReader reader(buffer);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) return {};
  return malformed(Message::descriptor());
}

// The same for a message that is short by its nature: its limit has no setting.
template <class Message>
Status parse_short_message(grpc::ByteBuffer* buffer, std::uint64_t bytes_max, Message* message) {
  if (Status status = check_message_bytes(buffer->Length(), bytes_max, ""); !status.ok()) return status;
  return parse_message(buffer, bytes_max, message);
}

// The same as the first. The elements of a long message are counted before, because each can take many times its bytes.
template <class Message>
Status parse_message(grpc::ByteBuffer* buffer, std::uint64_t bytes_max, const ElementLimits& limits, Message* message) {
  if (const std::uint64_t bytes = buffer->Length(); bytes > kShortParseBytes && bytes <= bytes_max) {
    if (Status status = check_elements(buffer, Message::descriptor(), limits); !status.ok()) return status;
  }
  return parse_message(buffer, bytes_max, message);
}

// A copy that is not in gRPC's memory. There, a message keeps whole blocks that hold parts of other messages, too.
inline grpc::ByteBuffer copy_out(const grpc::ByteBuffer& message) {
  grpc::Slice all;
  return message.DumpToSingleSlice(&all).ok() ? grpc::ByteBuffer(&all, 1) : message;
}

// What a message accounts for of the bytes of its connection: it comes in frames and records of TLS, which add less
// than a hundredth to a long one.
inline std::uint64_t accounted_bytes(std::uint64_t bytes) { return bytes + bytes / 64 + 128; }

// A parsed message of usual transactions takes about so many times its bytes.
inline constexpr std::uint64_t kParsedFactor = 4;

// Options of an arena for a message that takes about `bytes`. With its defaults, an arena takes its memory in blocks of
// at most 8 KiB, which are many for a message of 1,024 transactions.
inline google::protobuf::ArenaOptions arena_for(std::uint64_t bytes) {
  constexpr std::uint64_t kLeast = 1 << 10, kMost = 256 << 10;
  google::protobuf::ArenaOptions options;
  options.start_block_size = std::clamp(bytes, kLeast, kMost);
  options.max_block_size = kMost;
  return options;
}

template <class Message>
grpc::ByteBuffer serialize_message(const Message& message) {
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  const grpc::Status status = grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own_buffer);
  KILOKV_CHECK(status.ok());  // fails only beyond 2 GiB; the limits of answers are lower
  return buffer;
}

}  // namespace kilokv::server
