#include "engine/base/check.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

ColumnsBuilder::ColumnsBuilder(TransactionColumns* columns, const KeyHashSecret& secret)
    : columns_(columns), secret_(secret) {}

void ColumnsBuilder::begin(std::uint8_t precedence, DurationUs wait_timeout_us) {
  columns_->precedence.push_back(precedence);
  columns_->wait_timeout_us.push_back(wait_timeout_us);
  in_else_ = false;
}

std::uint32_t ColumnsBuilder::key(std::string_view bytes) {
  columns_->key_id.push_back(hash_key(bytes, secret_));
  columns_->key_bytes.insert(columns_->key_bytes.end(), bytes.begin(), bytes.end());
  columns_->key_end.push_back(static_cast<std::uint32_t>(columns_->key_bytes.size()));
  return static_cast<std::uint32_t>(columns_->key_end.size() - 1);
}

std::uint32_t ColumnsBuilder::value(std::string_view bytes) {
  columns_->value_bytes.insert(columns_->value_bytes.end(), bytes.begin(), bytes.end());
  columns_->value_end.push_back(static_cast<std::uint32_t>(columns_->value_bytes.size()));
  return static_cast<std::uint32_t>(columns_->value_end.size() - 1);
}

void ColumnsBuilder::guard(GuardKind kind, OnFalse on_false, std::uint32_t key, std::int64_t operand,
                           std::uint32_t other) {
  columns_->guard_kind.push_back(static_cast<std::uint8_t>(kind));
  columns_->guard_on_false.push_back(static_cast<std::uint8_t>(on_false));
  columns_->guard_key.push_back(key);
  columns_->guard_other.push_back(other);
  columns_->guard_operand.push_back(operand);
}

std::uint32_t ColumnsBuilder::range(std::string_view from, std::string_view to, std::uint32_t limit) {
  Column<char>& bytes = columns_->range_bytes;
  bytes.insert(bytes.end(), from.begin(), from.end());
  columns_->range_from_end.push_back(static_cast<std::uint32_t>(bytes.size()));
  bytes.insert(bytes.end(), to.begin(), to.end());
  columns_->range_to_end.push_back(static_cast<std::uint32_t>(bytes.size()));
  columns_->range_limit.push_back(limit);
  return static_cast<std::uint32_t>(columns_->range_limit.size() - 1);
}

void ColumnsBuilder::range_guard(GuardKind kind, OnFalse on_false, std::string_view from, std::string_view to,
                                 Version version) {
  KILOKV_CHECK(uses_range(kind));
  guard(kind, on_false, range(from, to, 0), static_cast<std::int64_t>(version));
}

void ColumnsBuilder::op(OpKind kind, std::uint32_t key, Operand operand, std::int64_t value) {
  columns_->op_kind.push_back(static_cast<std::uint8_t>(kind));
  columns_->op_operand.push_back(static_cast<std::uint8_t>(operand));
  columns_->op_key.push_back(key);
  columns_->op_value.push_back(value);
}

void ColumnsBuilder::range_op(OpKind kind, std::string_view from, std::string_view to, std::uint32_t limit) {
  op(kind, range(from, to, limit));
}

void ColumnsBuilder::begin_else() {
  columns_->then_end.push_back(static_cast<std::uint32_t>(columns_->op_kind.size()));
  in_else_ = true;
}

void ColumnsBuilder::end() {
  if (!in_else_) begin_else();
  columns_->guard_end.push_back(static_cast<std::uint32_t>(columns_->guard_kind.size()));
  columns_->else_end.push_back(static_cast<std::uint32_t>(columns_->op_kind.size()));
}

}  // namespace kilokv::engine
