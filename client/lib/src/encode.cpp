// Encoding of batches (encode.hpp).
#include "client/lib/src/encode.hpp"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "client/lib/src/batch_columns.hpp"
#include "client/lib/src/kinds.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::client {
namespace {

using google::protobuf::io::CodedOutputStream;
constexpr std::uint32_t kLengthDelimited = 2;

grpc::Slice encode_field(const google::protobuf::MessageLite& message, int field) {
  const std::size_t length = message.ByteSizeLong();
  const std::uint32_t tag = static_cast<std::uint32_t>(field) << 3 | kLengthDelimited;
  const auto length32 = static_cast<std::uint32_t>(length);
  const std::size_t head = CodedOutputStream::VarintSize32(tag) + CodedOutputStream::VarintSize32(length32);
  grpc::Slice slice(head + length);
  auto* out = const_cast<std::uint8_t*>(slice.begin());  // the slice is new, so nothing else reads it
  out = CodedOutputStream::WriteVarint32ToArray(tag, out);
  out = CodedOutputStream::WriteVarint32ToArray(length32, out);
  message.SerializeWithCachedSizesToArray(out);
  return slice;
}

bool waits(const Batch::Columns& c, int t) {
  const std::string& on_false = c.message.guard_on_false();
  if (on_false.empty()) return false;
  const auto begin = on_false.begin() + c.guard_begin(t);
  return std::find(begin, on_false.begin() + c.message.guard_ends(t), v1::ON_FALSE_WAIT) !=
         on_false.begin() + c.message.guard_ends(t);
}

void set_range(const Batch::Columns& c, std::uint32_t range, v1::KeyRange* out) {
  out->set_from(std::string(c.range_from(range)));
  out->set_to(std::string(c.range_to(range)));
}

void set_guard(const Batch::Columns& c, int g, v1::Guard* out) {
  const auto at = static_cast<std::size_t>(g);
  const v1::TransactionColumns& m = c.message;
  const GuardTraits& traits = guard_traits(m.guard_kind()[at]);
  out->set_kind(static_cast<v1::GuardKind>(m.guard_kind()[at]));
  if (!m.guard_on_false().empty()) out->set_on_false(static_cast<v1::OnFalse>(m.guard_on_false()[at]));
  const std::uint32_t key = m.guard_key(g);
  const std::int64_t operand = m.guard_operand(g);
  if (traits.uses_range) {
    set_range(c, key, out->mutable_range());
  } else if (key != kNoKey) {
    const std::string_view bytes = c.key(key);
    out->set_key(bytes.data(), bytes.size());
  }
  const std::uint32_t other = m.guard_other_key_size() == 0 ? kNoKey : m.guard_other_key(g);
  switch (traits.operand) {
    case GuardOperand::nothing: break;
    case GuardOperand::integer_or_key:
      if (other == kNoKey) {
        out->set_integer(operand);
      } else {
        out->set_other_key(std::string(c.key(other)));
      }
      break;
    case GuardOperand::version: out->set_version(static_cast<std::uint64_t>(operand)); break;
    case GuardOperand::bytes: out->set_bytes(std::string(c.value(operand))); break;
    case GuardOperand::time_or_key:
      if (key == kNoKey) out->set_time_us(static_cast<std::uint64_t>(operand));
      break;
  }
}

void set_operand(const Batch::Columns& c, int o, v1::Operand* out) {
  const std::string& kinds = c.message.operation_operand();
  const std::int64_t value = c.message.operation_value(o);
  switch (kinds.empty() ? v1::OPERAND_KIND_INTEGER : static_cast<v1::OperandKind>(kinds[static_cast<std::size_t>(o)])) {
    case v1::OPERAND_KIND_BYTES: out->set_bytes(std::string(c.value(value))); break;
    case v1::OPERAND_KIND_GET: out->set_get(static_cast<std::uint32_t>(value)); break;
    case v1::OPERAND_KIND_GET_NEGATED: out->set_get_negated(static_cast<std::uint32_t>(value)); break;
    case v1::OPERAND_KIND_COMMIT_VERSION: out->set_commit_version(true); break;
    case v1::OPERAND_KIND_BATCH_TIME: out->set_batch_time(true); break;
    default: out->set_integer(value); break;
  }
}

void set_operation(const Batch::Columns& c, int o, v1::Operation* out) {
  const char kind = c.message.operation_kind()[static_cast<std::size_t>(o)];
  const OperationTraits& traits = operation_traits(kind);
  const std::uint32_t key = c.message.operation_key(o);
  out->set_kind(static_cast<v1::OperationKind>(kind));
  if (traits.uses_range) {
    set_range(c, key, out->mutable_range());
    out->set_limit(c.message.range_limit(static_cast<int>(key)));
    return;
  }
  const std::string_view bytes = c.key(key);
  out->set_key(bytes.data(), bytes.size());
  if (!traits.operand.empty()) set_operand(c, o, out->mutable_operand());
  const int expiry = c.expiry_of(o);
  if (expiry < 0) return;
  const std::int64_t us = c.message.expiry_us(expiry);
  const bool is_ttl = c.message.expiry_kind()[static_cast<std::size_t>(expiry)] == v1::EXPIRY_KIND_TTL;
  is_ttl ? out->set_ttl_us(us) : out->set_expires_at_us(us);
}

void set_transaction(const Batch::Columns& c, int t, v1::Transaction* out, std::uint32_t guards_skipped = 0) {
  const v1::TransactionColumns& m = c.message;
  const auto index = [](std::uint32_t i) { return static_cast<int>(i); };
  for (int g = index(c.guard_begin(t) + guards_skipped); g < index(m.guard_ends(t)); ++g)
    set_guard(c, g, out->add_guards());
  for (int o = index(c.then_begin(t)); o < index(m.then_ends(t)); ++o) set_operation(c, o, out->add_then());
  for (int o = index(m.then_ends(t)); o < index(c.else_end(t)); ++o) set_operation(c, o, out->add_else_());
  out->set_precedence(c.transaction_precedence(t));
  out->set_wait_timeout_us(c.transaction_wait_timeout_us(t));
  out->set_expire_runs_else(c.transaction_expire_runs_else(t));
}

void set_transactions(const Batch::Columns& c, v1::TransactionRows* out) {
  out->mutable_transactions()->Reserve(c.size());
  for (int t = 0; t < c.size(); ++t) set_transaction(c, t, out->add_transactions());
}

}  // namespace

Error check_batch(const Batch& batch) {
  const Batch::Columns& c = batch.columns();
  std::string problem = c.misuse;
  if (problem.empty() && c.open) problem = "the last transaction of the batch has no end()";
  if (problem.empty() && batch.empty()) problem = "the batch holds no transaction";
  if (problem.empty()) return {};
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.message = "misuse of Batch: " + problem;
  return error;
}

std::uint64_t longest_wait_us(const Batch& batch) {
  const Batch::Columns& c = batch.columns();
  std::uint64_t longest_us = 0;
  if (c.message.guard_on_false().empty()) return longest_us;
  for (int t = 0; t < c.size(); ++t) {
    if (waits(c, t)) longest_us = std::max(longest_us, c.transaction_wait_timeout_us(t));
  }
  return longest_us;
}

void fill_transaction(const Batch& batch, int t, v1::Transaction* out, std::uint32_t guards_skipped) {
  set_transaction(batch.columns(), t, out, guards_skipped);
}

void fill_transactions(const Batch& batch, Encoding encoding, v1::ExecuteBatchRequest* out) {
  if (encoding == Encoding::columns) {
    *out->mutable_columns() = batch.columns().message;
  } else {
    set_transactions(batch.columns(), out->mutable_rows());
  }
}

grpc::Slice encode_transactions(const Batch& batch, Encoding encoding) {
  if (encoding == Encoding::columns) {
    return encode_field(batch.columns().message, v1::SessionRequest::kColumnsFieldNumber);
  }
  google::protobuf::Arena arena;
  auto* rows = google::protobuf::Arena::CreateMessage<v1::TransactionRows>(&arena);
  set_transactions(batch.columns(), rows);
  return encode_field(*rows, v1::SessionRequest::kRowsFieldNumber);
}

grpc::ByteBuffer join(const google::protobuf::MessageLite& head, const grpc::Slice& payload) {
  const grpc::Slice slices[] = {grpc::Slice(head.SerializeAsString()), payload};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace kilokv::client
