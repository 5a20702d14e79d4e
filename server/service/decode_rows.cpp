// This file checks the errors that only rows can have: a oneof that is not set, parts that do not belong together, and
// numbers that are wider than their column. engine::validate checks everything else, for rows and for columns. The
// enums of the protocol are open: any number can arrive as a kind. A number becomes a kind of the engine only if it is
// known, because a kind of the engine has one byte.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "engine/txn/kinds.hpp"
#include "server/service/decode.hpp"

namespace kilokv::server {
namespace {

using engine::ColumnsBuilder;
using engine::Expiry;
using engine::GuardKind;
using engine::GuardOperand;
using engine::OnFalse;
using engine::Operand;
using engine::OpKind;

// The place of a message in its request. It becomes text only when an error needs it.
struct Path {
  int transaction = 0;
  const char* list = nullptr;  // guards, then or else; null: the transaction itself
  int index = 0;
  Path in(const char* name, int i) const { return {transaction, name, i}; }
  std::string field(const char* name) const {
    std::string text = "transactions[" + std::to_string(transaction) + "].";
    if (list != nullptr) text += std::string(list) + "[" + std::to_string(index) + "].";
    text += name;
    if (text.back() == '.') text.pop_back();
    return text;
  }
};

Status refuse(const Path& path, const char* field, std::string limit, std::string actual,
              ErrorReason reason = ErrorReason::out_of_range) {
  return Status::invalid(
             {.field = path.field(field), .limit = std::move(limit), .actual = std::move(actual), .setting = ""})
      .because(reason);
}

// For a part that is not set, or that the kind does not have.
Status refuse_part(const Path& path, const char* field, std::string limit, std::string actual) {
  const ErrorReason reason = actual == "not set" ? ErrorReason::missing_field : ErrorReason::not_allowed;
  return refuse(path, field, std::move(limit), std::move(actual), reason);
}

constexpr const char* name_of(v1::Guard::OperandCase operand) {
  switch (operand) {
    case v1::Guard::kInteger: return "integer";
    case v1::Guard::kOtherKey: return "other_key";
    case v1::Guard::kVersion: return "version";
    case v1::Guard::kBytes: return "bytes";
    case v1::Guard::kTimeUs: return "time_us";
    case v1::Guard::OPERAND_NOT_SET: return "not set";
  }
  return "not set";
}

constexpr const char* name_of(v1::Operand::KindCase operand) {
  switch (operand) {
    case v1::Operand::kInteger: return "integer";
    case v1::Operand::kBytes: return "bytes";
    case v1::Operand::kGet: return "get";
    case v1::Operand::kGetNegated: return "get_negated";
    case v1::Operand::kCommitVersion: return "commit_version";
    case v1::Operand::kBatchTime: return "batch_time";
    case v1::Operand::KIND_NOT_SET: return "not set";
  }
  return "not set";
}

const std::string& name_of(v1::GuardKind kind) { return v1::GuardKind_Name(kind); }
const std::string& name_of(v1::OperationKind kind) { return v1::OperationKind_Name(kind); }

template <class Message>
Status check_known(const Path& path, const char* field, const Message& message) {
  if (!has_unknown_fields(message)) return {};
  return refuse(path, field, "fields that this server knows", "an unknown field", ErrorReason::unknown_field);
}

// For the parts of a guard or of an operation.
template <class Message>
Status check_parts_known(const Path& path, const Message& message) {
  Status status = check_known(path, "", message);
  return status.ok() && message.has_range() ? check_known(path, "range", message.range()) : status;
}

// Checks that the message has exactly what its kind needs: a key or a range.
template <class Message>
Status check_target(const Path& path, const Message& message, bool needs_range) {
  if (needs_range == message.has_range() && (!needs_range || message.key().empty())) return {};
  const std::string& kind = name_of(message.kind());
  if (!needs_range) return refuse_part(path, "range", "no range for " + kind, "set");
  if (!message.has_range()) return refuse_part(path, "range", "a range for " + kind, "not set");
  return refuse_part(path, "key", "no key for " + kind, "set");
}

Status check_guard_operand(const Path& path, const v1::Guard& guard, const char* allowed, bool good) {
  if (good) return {};
  return refuse_part(path, "operand", std::string(allowed) + " for " + v1::GuardKind_Name(guard.kind()),
                     name_of(guard.operand_case()));
}

Status add_compare(const Path& path, const v1::Guard& guard, OnFalse on_false, ColumnsBuilder* builder) {
  const bool with_key = guard.operand_case() == v1::Guard::kOtherKey;
  Status status =
      check_guard_operand(path, guard, "integer or other_key", with_key || guard.operand_case() == v1::Guard::kInteger);
  if (!status.ok()) return status;
  const std::uint32_t key = builder->key(guard.key());
  const std::uint32_t other = with_key ? builder->key(guard.other_key()) : engine::kNone;
  builder->guard(static_cast<GuardKind>(guard.kind()), on_false, key, guard.integer(), other);
  return {};
}

Status add_version_guard(const Path& path, const v1::Guard& guard, OnFalse on_false, ColumnsBuilder* builder) {
  Status status = check_guard_operand(path, guard, "version", guard.operand_case() == v1::Guard::kVersion);
  if (!status.ok()) return status;
  if (guard.version() > kVersionMax) {
    return refuse(path, "version", std::to_string(kVersionMax), std::to_string(guard.version()));
  }
  const auto kind = static_cast<GuardKind>(guard.kind());
  if (uses_range(kind)) {
    builder->range_guard(kind, on_false, guard.range().from(), guard.range().to(), guard.version());
  } else {
    builder->guard(kind, on_false, builder->key(guard.key()), static_cast<std::int64_t>(guard.version()));
  }
  return {};
}

Status add_time_guard(const Path& path, const v1::Guard& guard, OnFalse on_false, ColumnsBuilder* builder) {
  const auto kind = static_cast<GuardKind>(guard.kind());
  if (!guard.key().empty()) {
    Status status =
        check_guard_operand(path, guard, "either a key or time_us", guard.operand_case() == v1::Guard::OPERAND_NOT_SET);
    if (status.ok()) builder->guard(kind, on_false, builder->key(guard.key()), 0);
    return status;
  }
  Status status = check_guard_operand(path, guard, "time_us or a key", guard.operand_case() == v1::Guard::kTimeUs);
  if (!status.ok()) return status;
  if (guard.time_us() > static_cast<std::uint64_t>(std::numeric_limits<TimeUs>::max())) {
    return refuse(path, "time_us", std::to_string(std::numeric_limits<TimeUs>::max()), std::to_string(guard.time_us()));
  }
  builder->guard(kind, on_false, engine::kNone, static_cast<TimeUs>(guard.time_us()));
  return {};
}

std::string numbers(int first, int last) { return std::to_string(first) + " to " + std::to_string(last); }

Status add_guard(const Path& path, const v1::Guard& guard, ColumnsBuilder* builder) {
  if (!v1::OnFalse_IsValid(guard.on_false())) {
    return refuse(path, "on_false", "ON_FALSE_FAIL (0) or ON_FALSE_WAIT (1)", std::to_string(guard.on_false()));
  }
  if (!v1::GuardKind_IsValid(guard.kind()) || guard.kind() == v1::GUARD_KIND_UNSPECIFIED) {
    return refuse(path, "kind", "a GuardKind, " + numbers(engine::kGuardKindMin, engine::kGuardKindMax),
                  std::to_string(guard.kind()));
  }
  const auto on_false = static_cast<OnFalse>(guard.on_false());
  const auto kind = static_cast<GuardKind>(guard.kind());
  switch (operand_of(kind)) {
    case GuardOperand::nothing: {
      Status status =
          check_guard_operand(path, guard, "no operand", guard.operand_case() == v1::Guard::OPERAND_NOT_SET);
      if (!status.ok()) return status;
      builder->guard(kind, on_false, builder->key(guard.key()), 0);
      return {};
    }
    case GuardOperand::integer_or_key: return add_compare(path, guard, on_false, builder);
    case GuardOperand::version: return add_version_guard(path, guard, on_false, builder);
    case GuardOperand::bytes: {
      Status status = check_guard_operand(path, guard, "bytes", guard.operand_case() == v1::Guard::kBytes);
      if (!status.ok()) return status;
      const std::uint32_t key = builder->key(guard.key());
      builder->guard(kind, on_false, key, builder->value(guard.bytes()));
      return {};
    }
    case GuardOperand::time_or_key: return add_time_guard(path, guard, on_false, builder);
  }
  return {};
}

Status check_guard_target(const Path& path, const v1::Guard& guard) {
  Status known = check_parts_known(path, guard);
  if (!known.ok()) return known;
  if (!v1::GuardKind_IsValid(guard.kind())) return {};  // add_guard refuses it
  return check_target(path, guard, uses_range(static_cast<GuardKind>(guard.kind())));
}

// Adds an operation with its operand.
Status add_write(const Path& path, const v1::Operation& operation, OpKind kind, ColumnsBuilder* builder) {
  const v1::Operand& operand = operation.operand();
  const std::uint32_t key = builder->key(operation.key());
  switch (operand.kind_case()) {
    case v1::Operand::kInteger: builder->op(kind, key, Operand::integer, operand.integer()); return {};
    case v1::Operand::kBytes:
      if (!takes_bytes(kind)) break;
      builder->op(kind, key, Operand::bytes, builder->value(operand.bytes()));
      return {};
    case v1::Operand::kGet: builder->op(kind, key, Operand::get, operand.get()); return {};
    case v1::Operand::kGetNegated: builder->op(kind, key, Operand::get_negated, operand.get_negated()); return {};
    case v1::Operand::kCommitVersion:
      if (!operand.commit_version()) return refuse(path, "operand.commit_version", "true", "false");
      builder->op(kind, key, Operand::commit_version);
      return {};
    case v1::Operand::kBatchTime:
      if (!operand.batch_time()) return refuse(path, "operand.batch_time", "true", "false");
      builder->op(kind, key, Operand::batch_time);
      return {};
    case v1::Operand::KIND_NOT_SET: break;
  }
  const char* allowed = takes_bytes(kind) ? "an operand for " : "an operand other than bytes for ";
  return refuse_part(path, "operand", allowed + v1::OperationKind_Name(operation.kind()), name_of(operand.kind_case()));
}

Status add_operation(const Path& path, const v1::Operation& operation, ColumnsBuilder* builder) {
  if (!v1::OperationKind_IsValid(operation.kind()) || operation.kind() == v1::OPERATION_KIND_UNSPECIFIED) {
    return refuse(path, "kind", "an OperationKind, " + numbers(engine::kOpKindMin, engine::kOpKindMax),
                  std::to_string(operation.kind()));
  }
  const auto kind = static_cast<OpKind>(operation.kind());
  if (takes_operand(kind)) {
    Status status = add_write(path, operation, kind, builder);
    if (operation.has_expires_at_us()) builder->expire(Expiry::at, operation.expires_at_us());
    if (operation.has_ttl_us()) builder->expire(Expiry::after, operation.ttl_us());
    return status;
  }
  if (uses_range(kind)) {
    builder->range_op(kind, operation.range().from(), operation.range().to(), operation.limit());
  } else {
    builder->op(kind, builder->key(operation.key()));
  }
  return {};
}

// Refuses parts that the kind of the operation does not have, and parts that are missing.
Status check_operation_parts(const Path& path, const v1::Operation& operation) {
  Status known = check_parts_known(path, operation);
  if (known.ok() && operation.has_operand()) known = check_known(path, "operand", operation.operand());
  if (!known.ok()) return known;
  const auto kind = operation.kind();
  if (!v1::OperationKind_IsValid(kind)) return {};  // add_operation refuses it
  const bool needs_range = uses_range(static_cast<OpKind>(kind));
  const bool needs_operand = takes_operand(static_cast<OpKind>(kind));
  Status status = check_target(path, operation, needs_range);
  if (!status.ok()) return status;
  if (!needs_operand && operation.has_operand()) {
    return refuse_part(path, "operand", "no operand for " + v1::OperationKind_Name(kind), "set");
  }
  if (!needs_operand && operation.expiry_case() != v1::Operation::EXPIRY_NOT_SET) {
    return refuse_part(path, operation.has_ttl_us() ? "ttl_us" : "expires_at_us",
                       "no expiry for " + v1::OperationKind_Name(kind), "set");
  }
  if (!needs_range && operation.limit() != 0) {
    return refuse_part(path, "limit", "0 for " + v1::OperationKind_Name(kind), std::to_string(operation.limit()));
  }
  return {};
}

Status add_operations(const Path& path, const char* list,
                      const google::protobuf::RepeatedPtrField<v1::Operation>& operations, ColumnsBuilder* builder) {
  for (int i = 0; i < operations.size(); ++i) {
    Status status = check_operation_parts(path.in(list, i), operations[i]);
    if (status.ok()) status = add_operation(path.in(list, i), operations[i], builder);
    if (!status.ok()) return status;
  }
  return {};
}

Status add_transaction(const Path& path, const v1::Transaction& transaction, ColumnsBuilder* builder) {
  if (Status head = check_head(transaction, path.transaction); !head.ok()) return head;
  // A value beyond the signed range exceeds every limit. It becomes the largest value, which validation refuses.
  constexpr auto kTimeoutMax = static_cast<std::uint64_t>(std::numeric_limits<DurationUs>::max());
  builder->begin(static_cast<std::uint8_t>(transaction.precedence()),
                 static_cast<DurationUs>(std::min<std::uint64_t>(transaction.wait_timeout_us(), kTimeoutMax)),
                 transaction.expire_runs_else());
  for (int i = 0; i < transaction.guards_size(); ++i) {
    const Path guard_path = path.in("guards", i);
    Status status = check_guard_target(guard_path, transaction.guards(i));
    if (status.ok()) status = add_guard(guard_path, transaction.guards(i), builder);
    if (!status.ok()) return status;
  }
  Status status = add_operations(path, "then", transaction.then(), builder);
  if (!status.ok()) return status;
  builder->begin_else();
  status = add_operations(path, "else", transaction.else_(), builder);
  builder->end();
  return status;
}

}  // namespace

Status check_head(const v1::Transaction& transaction, int index) {
  const Path path{.transaction = index};
  Status known = check_known(path, "", transaction);
  if (!known.ok()) return known;
  if (transaction.precedence() <= 255) return {};
  return refuse(path, "precedence", "255", std::to_string(transaction.precedence()));
}

Status add_row(const v1::Transaction& transaction, int index, ColumnsBuilder* builder) {
  return add_transaction(Path{.transaction = index}, transaction, builder);
}

Status decode(const v1::Transaction& transaction, const DecodeContext& context, engine::TransactionColumns* columns) {
  ColumnsBuilder builder(columns, context.secret);
  Status status = add_transaction(Path{}, transaction, &builder);
  return status.ok() ? engine::validate(*columns, context.limits) : status;
}

Status decode(const v1::TransactionRows& rows, const DecodeContext& context, engine::TransactionColumns* columns) {
  ColumnsBuilder builder(columns, context.secret);
  for (int i = 0; i < rows.transactions_size(); ++i) {
    Status status = add_transaction(Path{.transaction = i}, rows.transactions(i), &builder);
    if (!status.ok()) return status;
  }
  return engine::validate(*columns, context.limits);
}

}  // namespace kilokv::server
