#include <algorithm>
#include <limits>
#include <string>

#include "server/service/decode.hpp"

namespace kilokv::server {
namespace {

using engine::Column;

// Does not check lengths, ends and indices. engine::validate checks the copies before other code relies on them.
template <class T, class U>
void copy(const google::protobuf::RepeatedField<U>& from, Column<T>* to) {
  static_assert(sizeof(T) == sizeof(U));
  to->assign(from.begin(), from.end());
}

void copy(const std::string& from, Column<std::uint8_t>* to) { to->assign(from.begin(), from.end()); }
void copy(const std::string& from, Column<char>* to) { to->assign(from.begin(), from.end()); }

// A column that the client may leave out. Then every element is `value`.
template <class T, class Field>
void copy_or_fill(const Field& from, std::size_t size, T value, Column<T>* to) {
  if (from.empty()) {
    to->assign(size, value);
  } else {
    copy(from, to);
  }
}

void copy_transactions(const v1::TransactionColumns& m, engine::TransactionColumns* columns) {
  const auto n = static_cast<std::size_t>(m.guard_ends_size());
  copy(m.guard_ends(), &columns->guard_end);
  copy(m.then_ends(), &columns->then_end);
  copy(m.else_ends().empty() ? m.then_ends() : m.else_ends(), &columns->else_end);
  copy_or_fill(m.precedence(), n, std::uint8_t{0}, &columns->precedence);
  copy_or_fill(m.wait_timeout_us(), n, DurationUs{0}, &columns->wait_timeout_us);
  copy_or_fill(m.expire_runs_else(), n, std::uint8_t{0}, &columns->expire_runs_else);
  // A value beyond the signed range exceeds every limit. It becomes the largest value, which validation refuses.
  for (DurationUs& timeout_us : columns->wait_timeout_us) {
    if (timeout_us < 0) timeout_us = std::numeric_limits<DurationUs>::max();
  }
}

// A key of one byte takes 20 more when it is decoded. So there are no more keys than guards and operations can name.
Status check_key_count(const v1::TransactionColumns& m, std::size_t keys) {
  const auto named =
      2 * static_cast<std::size_t>(m.guard_key_size()) + static_cast<std::size_t>(m.operation_key_size());
  if (keys <= named) return {};
  return Status::invalid({.field = m.key_length() == 0 ? "columns.key_ends" : "columns.key_bytes",
                          .limit = std::to_string(named) + " keys, two for each guard and one for each operation",
                          .actual = std::to_string(keys) + " keys",
                          .setting = ""})
      .because(ErrorReason::out_of_range);
}

// Columns that are left out are filled in for each guard, so this is checked before.
Status check_guard_count(const v1::TransactionColumns& m) {
  const auto kinds = m.guard_kind().size(), keys = static_cast<std::size_t>(m.guard_key_size());
  if (kinds == keys) return {};
  return Status::invalid({.field = "columns.guard_key",
                          .limit = std::to_string(kinds) + " elements, as in the other columns of its group",
                          .actual = std::to_string(keys) + " elements",
                          .setting = ""});
}

Status copy_keys(const v1::TransactionColumns& m, engine::TransactionColumns* columns) {
  copy(m.key_bytes(), &columns->key_bytes);
  const std::size_t key_length = m.key_length();
  const std::size_t keys =
      key_length == 0 ? static_cast<std::size_t>(m.key_ends_size()) : m.key_bytes().size() / key_length;
  if (key_length == 0) {
    if (Status status = check_key_count(m, keys); !status.ok()) return status;
    copy(m.key_ends(), &columns->key_end);
  } else {
    if (!m.key_ends().empty()) {
      return Status::invalid({.field = "columns.key_ends",
                              .limit = "no elements together with key_length",
                              .actual = std::to_string(m.key_ends_size()) + " elements",
                              .setting = ""})
          .because(ErrorReason::not_allowed);
    }
    if (m.key_bytes().size() % key_length != 0) {
      return Status::invalid({.field = "columns.key_bytes",
                              .limit = "a multiple of key_length, " + std::to_string(key_length) + " bytes",
                              .actual = std::to_string(m.key_bytes().size()) + " bytes",
                              .setting = ""});
    }
    if (Status status = check_key_count(m, keys); !status.ok()) return status;
    columns->key_end.resize(keys);
    std::uint32_t end = 0;
    for (std::uint32_t& key_end : columns->key_end) key_end = end += static_cast<std::uint32_t>(key_length);
  }
  columns->key_id.resize(keys);
  return {};
}

void copy_program(const v1::TransactionColumns& m, engine::TransactionColumns* columns) {
  const std::size_t guards = m.guard_kind().size();
  copy(m.guard_kind(), &columns->guard_kind);
  copy_or_fill(m.guard_on_false(), guards, std::uint8_t{0}, &columns->guard_on_false);
  copy(m.guard_key(), &columns->guard_key);
  copy_or_fill(m.guard_other_key(), guards, engine::kNone, &columns->guard_other);
  copy(m.guard_operand(), &columns->guard_operand);
  copy(m.operation_kind(), &columns->op_kind);
  copy_or_fill(m.operation_operand(), m.operation_kind().size(), std::uint8_t{0}, &columns->op_operand);
  copy(m.operation_key(), &columns->op_key);
  copy(m.operation_value(), &columns->op_value);
  copy(m.range_from_ends(), &columns->range_from_end);
  copy(m.range_to_ends(), &columns->range_to_end);
  copy(m.range_limit(), &columns->range_limit);
  copy(m.range_bytes(), &columns->range_bytes);
  copy(m.value_ends(), &columns->value_end);
  copy(m.value_bytes(), &columns->value_bytes);
  copy(m.expiry_operation(), &columns->expiry_op);
  copy(m.expiry_kind(), &columns->expiry_kind);
  copy(m.expiry_us(), &columns->expiry_us);
}

}  // namespace

Status decode(const v1::TransactionColumns& message, const DecodeContext& context,
              engine::TransactionColumns* columns) {
  if (has_unknown_fields(message)) {
    return Status::invalid({.field = "columns",
                            .limit = "columns that this server knows",
                            .actual = "an unknown column",
                            .setting = ""})
        .because(ErrorReason::unknown_field);
  }
  copy_transactions(message, columns);
  Status status = check_guard_count(message);
  if (status.ok()) status = copy_keys(message, columns);
  if (!status.ok()) return status;
  copy_program(message, columns);
  status = engine::validate(*columns, context.limits);
  if (!status.ok()) return status;
  // The keys are hashed only here, because only now the ends of the keys are validated.
  for (std::size_t i = 0; i < columns->key_id.size(); ++i) {
    columns->key_id[i] = engine::hash_key(columns->key(i), context.secret);
  }
  return {};
}

}  // namespace kilokv::server
