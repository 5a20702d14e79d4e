#include "engine/base/check.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

namespace {

// A column that is full grows by a quarter. A vector alone would double, and what a client sends would take twice its
// memory.
template <class T>
void make_room(Column<T>* column, std::size_t more) {
  constexpr std::size_t kLeast = 64;
  const std::size_t size = column->size() + more;
  if (size > column->capacity()) column->reserve(size + column->size() / 4 + kLeast);
}

template <class T>
void push(Column<T>* column, T value) {
  make_room(column, 1);
  column->push_back(value);
}

void append(Column<char>* column, std::string_view bytes) {
  make_room(column, bytes.size());
  column->insert(column->end(), bytes.begin(), bytes.end());
}

}  // namespace

ColumnsBuilder::ColumnsBuilder(TransactionColumns* columns, const KeyHashSecret& secret)
    : columns_(columns), secret_(secret) {}

void ColumnsBuilder::begin(std::uint8_t precedence, DurationUs wait_timeout_us, bool expire_runs_else) {
  push(&columns_->precedence, precedence);
  push(&columns_->wait_timeout_us, wait_timeout_us);
  push(&columns_->expire_runs_else, static_cast<std::uint8_t>(expire_runs_else));
  in_else_ = false;
}

std::uint32_t ColumnsBuilder::key(std::string_view bytes) {
  push(&columns_->key_id, hash_key(bytes, secret_));
  append(&columns_->key_bytes, bytes);
  push(&columns_->key_end, static_cast<std::uint32_t>(columns_->key_bytes.size()));
  return static_cast<std::uint32_t>(columns_->key_end.size() - 1);
}

std::uint32_t ColumnsBuilder::value(std::string_view bytes) {
  append(&columns_->value_bytes, bytes);
  push(&columns_->value_end, static_cast<std::uint32_t>(columns_->value_bytes.size()));
  return static_cast<std::uint32_t>(columns_->value_end.size() - 1);
}

void ColumnsBuilder::guard(GuardKind kind, OnFalse on_false, std::uint32_t key, std::int64_t operand,
                           std::uint32_t other) {
  push(&columns_->guard_kind, static_cast<std::uint8_t>(kind));
  push(&columns_->guard_on_false, static_cast<std::uint8_t>(on_false));
  push(&columns_->guard_key, key);
  push(&columns_->guard_other, other);
  push(&columns_->guard_operand, operand);
}

std::uint32_t ColumnsBuilder::range(std::string_view from, std::string_view to, std::uint32_t limit) {
  Column<char>& bytes = columns_->range_bytes;
  append(&bytes, from);
  push(&columns_->range_from_end, static_cast<std::uint32_t>(bytes.size()));
  append(&bytes, to);
  push(&columns_->range_to_end, static_cast<std::uint32_t>(bytes.size()));
  push(&columns_->range_limit, limit);
  return static_cast<std::uint32_t>(columns_->range_limit.size() - 1);
}

void ColumnsBuilder::range_guard(GuardKind kind, OnFalse on_false, std::string_view from, std::string_view to,
                                 Version version) {
  KILOKV_CHECK(uses_range(kind));
  guard(kind, on_false, range(from, to, 0), static_cast<std::int64_t>(version));
}

void ColumnsBuilder::op(OpKind kind, std::uint32_t key, Operand operand, std::int64_t value) {
  push(&columns_->op_kind, static_cast<std::uint8_t>(kind));
  push(&columns_->op_operand, static_cast<std::uint8_t>(operand));
  push(&columns_->op_key, key);
  push(&columns_->op_value, value);
}

void ColumnsBuilder::range_op(OpKind kind, std::string_view from, std::string_view to, std::uint32_t limit) {
  op(kind, range(from, to, limit));
}

void ColumnsBuilder::expire(Expiry kind, std::int64_t us) {
  push(&columns_->expiry_op, static_cast<std::uint32_t>(columns_->op_kind.size() - 1));
  push(&columns_->expiry_kind, static_cast<std::uint8_t>(kind));
  push(&columns_->expiry_us, us);
}

void ColumnsBuilder::begin_else() {
  push(&columns_->then_end, static_cast<std::uint32_t>(columns_->op_kind.size()));
  in_else_ = true;
}

void ColumnsBuilder::end() {
  if (!in_else_) begin_else();
  push(&columns_->guard_end, static_cast<std::uint32_t>(columns_->guard_kind.size()));
  push(&columns_->else_end, static_cast<std::uint32_t>(columns_->op_kind.size()));
}

}  // namespace kilokv::engine
