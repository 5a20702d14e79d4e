// What the parse of a long message may take. A few bytes on the wire can become a hundred bytes in memory: an empty
// part of a list takes two bytes, and the object for it about 100. So the elements of a long message are counted before
// it is parsed. Short messages are parsed at once, because all their elements together take little.
//
// Thread safety: pure functions.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/txn/validate.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

// Messages up to this length are parsed at once: their parts take at most some megabytes.
inline constexpr std::uint64_t kShortParseBytes = std::uint64_t{128} << 10;

// The most elements of the lists of a message.
struct ElementLimits {
  const engine::TransactionLimits& transactions;
  int transaction = 0;  // the place of a transaction in its request, for the error
};

// Counts the elements of each list in a message of this type, without parsing it. INVALID_ARGUMENT: a list is longer
// than the limits allow, the message has many fields that are no elements of a list, or the bytes are malformed.
// Cost: some nanoseconds for each field.
Status check_elements(grpc::ByteBuffer* buffer, const google::protobuf::Descriptor* type, const ElementLimits& limits);
Status check_elements(google::protobuf::io::CodedInputStream* input, const google::protobuf::Descriptor* type,
                      const ElementLimits& limits);

// A message has at most so many fields that are no elements of a list: each known one once, and unknown ones. More of
// them say nothing, and each may take memory.
inline constexpr int kOtherFieldsMax = 64;
Status too_many_fields(const google::protobuf::Descriptor* type);

// The bytes are not a message of this type.
Status malformed(const google::protobuf::Descriptor* type);

}  // namespace kilokv::server
