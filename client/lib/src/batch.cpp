// Batch: appends transactions to the columnar message (batch_columns.hpp).
#include "kilokv/batch.hpp"

#include <cstddef>

#include "client/lib/src/batch_columns.hpp"

namespace kilokv::client {
namespace {

// Appends `value` as element `index` of an optional one-byte column.
void append_optional(std::string* column, std::size_t index, std::uint8_t value) {
  if (value == 0 && column->empty()) return;
  column->resize(index, '\0');
  column->push_back(static_cast<char>(value));
}

template <class T>
void append_optional(google::protobuf::RepeatedField<T>* column, int index, T value, T absent) {
  if (value == absent && column->empty()) return;
  column->Resize(index, absent);
  column->Add(value);
}

std::string_view slice(const std::string& bytes, std::size_t begin, std::size_t end) {
  return std::string_view(bytes).substr(begin, end - begin);
}

std::size_t begin_of(const google::protobuf::RepeatedField<std::uint32_t>& ends, int i) {
  return i == 0 ? 0 : ends.Get(i - 1);
}

}  // namespace

std::string_view Batch::Columns::key(std::uint32_t i) const {
  if (const std::size_t length = message.key_length()) return slice(message.key_bytes(), i * length, (i + 1) * length);
  const int at = static_cast<int>(i);
  return slice(message.key_bytes(), begin_of(message.key_ends(), at), message.key_ends(at));
}

std::string_view Batch::Columns::value(std::int64_t i) const {
  const int at = static_cast<int>(i);
  return slice(message.value_bytes(), begin_of(message.value_ends(), at), message.value_ends(at));
}

std::string_view Batch::Columns::range_from(std::uint32_t i) const {
  const int at = static_cast<int>(i);
  return slice(message.range_bytes(), begin_of(message.range_to_ends(), at), message.range_from_ends(at));
}

std::string_view Batch::Columns::range_to(std::uint32_t i) const {
  const int at = static_cast<int>(i);
  return slice(message.range_bytes(), message.range_from_ends(at), message.range_to_ends(at));
}

std::uint8_t Batch::Columns::transaction_precedence(int t) const {
  const std::string& column = message.precedence();
  return column.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(column[static_cast<std::size_t>(t)]);
}

std::uint64_t Batch::Columns::transaction_wait_timeout_us(int t) const {
  return message.wait_timeout_us_size() == 0 ? 0 : message.wait_timeout_us(t);
}

bool Batch::Columns::transaction_expire_runs_else(int t) const {
  const std::string& column = message.expire_runs_else();
  return !column.empty() && column[static_cast<std::size_t>(t)] != 0;
}

void Batch::Columns::report(const char* problem) {
  if (misuse.empty()) misuse = "transaction " + std::to_string(size()) + " of the batch: " + problem;
}

void Batch::Columns::check_open() {
  if (!open) report("a guard or operation outside of begin() and end()");
}

bool Batch::Columns::check_key(Key key) {
  check_open();
  if (static_cast<std::uint32_t>(key) >= keys) report("a key that Batch::key of this batch did not return");
  return misuse.empty();
}

std::int64_t Batch::Columns::add_value(std::string_view bytes) {
  message.mutable_value_bytes()->append(bytes);
  message.add_value_ends(static_cast<std::uint32_t>(message.value_bytes().size()));
  return message.value_ends_size() - 1;
}

std::uint32_t Batch::Columns::add_range(std::string_view from, std::string_view to, std::uint32_t limit) {
  if (!open) report("a range outside of begin() and end()");
  std::string* bytes = message.mutable_range_bytes();
  message.add_range_from_ends(static_cast<std::uint32_t>(bytes->append(from).size()));
  message.add_range_to_ends(static_cast<std::uint32_t>(bytes->append(to).size()));
  message.add_range_limit(limit);
  return static_cast<std::uint32_t>(message.range_limit_size() - 1);
}

void Batch::Columns::add_guard(v1::GuardKind kind, OnFalse on_false, std::uint32_t key, std::int64_t operand,
                               std::uint32_t other) {
  if (!misuse.empty()) return;
  const int index = message.guard_key_size();
  message.mutable_guard_kind()->push_back(static_cast<char>(kind));
  append_optional(message.mutable_guard_on_false(), static_cast<std::size_t>(index),
                  static_cast<std::uint8_t>(on_false));
  message.add_guard_key(key);
  append_optional(message.mutable_guard_other_key(), index, other, kNoKey);
  message.add_guard_operand(operand);
}

Op Batch::Columns::add_operation(v1::OperationKind kind, std::uint32_t key, v1::OperandKind operand,
                                 std::int64_t value) {
  const int index = message.operation_key_size();
  const Op op{static_cast<std::uint32_t>(index - list_begin)};
  if (!misuse.empty()) return op;
  message.mutable_operation_kind()->push_back(static_cast<char>(kind));
  append_optional(message.mutable_operation_operand(), static_cast<std::size_t>(index),
                  static_cast<std::uint8_t>(operand));
  message.add_operation_key(key);
  message.add_operation_value(value);
  return op;
}

int Batch::Columns::expiry_of(int operation) const {
  const auto& operations = message.expiry_operation();
  const auto found = std::lower_bound(operations.begin(), operations.end(), static_cast<std::uint32_t>(operation));
  const bool has = found != operations.end() && *found == static_cast<std::uint32_t>(operation);
  return has ? static_cast<int>(found - operations.begin()) : -1;
}

Op Batch::Columns::add_operation(v1::OperationKind kind, Key key, const Operand& operand, const Expiry& expiry) {
  check_key(key);
  if (misuse.empty() && !std::holds_alternative<std::monostate>(expiry)) {
    const auto* const ttl = std::get_if<TimeToLive>(&expiry);
    message.add_expiry_operation(static_cast<std::uint32_t>(message.operation_key_size()));
    message.mutable_expiry_kind()->push_back(
        static_cast<char>(ttl != nullptr ? v1::EXPIRY_KIND_TTL : v1::EXPIRY_KIND_AT));
    message.add_expiry_us(ttl != nullptr ? ttl->us : std::get<ExpiresAt>(expiry).time_us);
  }
  const auto at = static_cast<std::uint32_t>(key);
  if (const auto* integer = std::get_if<std::int64_t>(&operand)) {
    return add_operation(kind, at, v1::OPERAND_KIND_INTEGER, *integer);
  }
  if (const auto* bytes = std::get_if<std::string_view>(&operand)) {
    if (kind == v1::OPERATION_KIND_ADD) report("add() takes an integer, not bytes");
    return add_operation(kind, at, v1::OPERAND_KIND_BYTES, add_value(*bytes));
  }
  if (const auto* from = std::get_if<FromGet>(&operand)) {
    const auto get = static_cast<std::size_t>(from->get) + static_cast<std::size_t>(list_begin);
    const std::string& kinds = message.operation_kind();
    if (get >= kinds.size() || kinds[get] != v1::OPERATION_KIND_GET) {
      report("FromGet names no earlier get() of the same list");
    }
    return add_operation(kind, at, from->negate ? v1::OPERAND_KIND_GET_NEGATED : v1::OPERAND_KIND_GET,
                         static_cast<std::int64_t>(from->get));
  }
  const bool version = std::holds_alternative<CommitVersion>(operand);
  return add_operation(kind, at, version ? v1::OPERAND_KIND_COMMIT_VERSION : v1::OPERAND_KIND_BATCH_TIME);
}

Batch::Batch() : columns_(std::make_unique<Columns>()) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

void Batch::begin(const TransactionOptions& options) {
  Columns& c = *columns_;
  if (c.open) c.report("begin() before the end() of the previous transaction");
  c.open = true;
  c.in_else = false;
  c.precedence = options.precedence;
  c.wait_timeout_us = options.wait_timeout_us;
  c.expire_runs_else = options.expire_runs_else;
  c.list_begin = c.message.operation_key_size();
}

Key Batch::key(std::string_view bytes) {
  Columns& c = *columns_;
  std::string* all = c.message.mutable_key_bytes();
  const auto length = static_cast<std::uint32_t>(bytes.size());
  auto* ends = c.message.mutable_key_ends();
  if (c.keys == 0)
    c.message.set_key_length(length);  // while all keys have the same length, the message has it instead of their ends
  if (ends->empty() && (length == 0 || length != c.message.key_length())) {
    for (std::uint32_t i = 1; i <= c.keys; ++i) ends->Add(i * c.message.key_length());
    c.message.set_key_length(0);
  }
  all->append(bytes);
  if (c.message.key_length() == 0) ends->Add(static_cast<std::uint32_t>(all->size()));
  return Key{c.keys++};
}

void Batch::guard_exists(Key key, OnFalse on_false) {
  columns_->check_key(key);
  columns_->add_guard(v1::GUARD_KIND_EXISTS, on_false, static_cast<std::uint32_t>(key), 0);
}

void Batch::guard_absent(Key key, OnFalse on_false) {
  columns_->check_key(key);
  columns_->add_guard(v1::GUARD_KIND_ABSENT, on_false, static_cast<std::uint32_t>(key), 0);
}

void Batch::guard(Key key, Compare compare, std::int64_t value, OnFalse on_false) {
  columns_->check_key(key);
  columns_->add_guard(static_cast<v1::GuardKind>(compare), on_false, static_cast<std::uint32_t>(key), value);
}

void Batch::guard_keys(Key key, Compare compare, Key other, OnFalse on_false) {
  columns_->check_key(key);
  columns_->check_key(other);
  columns_->add_guard(static_cast<v1::GuardKind>(compare), on_false, static_cast<std::uint32_t>(key), 0,
                      static_cast<std::uint32_t>(other));
}

void Batch::guard_version(Key key, std::uint64_t version, OnFalse on_false) {
  columns_->check_key(key);
  columns_->add_guard(v1::GUARD_KIND_VERSION_EQUAL, on_false, static_cast<std::uint32_t>(key),
                      static_cast<std::int64_t>(version));
}

void Batch::guard_unchanged(Key key, std::uint64_t since_version, OnFalse on_false) {
  columns_->check_key(key);
  columns_->add_guard(v1::GUARD_KIND_UNCHANGED, on_false, static_cast<std::uint32_t>(key),
                      static_cast<std::int64_t>(since_version));
}

void Batch::guard_bytes(Key key, std::string_view bytes, OnFalse on_false) {
  columns_->check_key(key);
  columns_->add_guard(v1::GUARD_KIND_BYTES_EQUAL, on_false, static_cast<std::uint32_t>(key),
                      columns_->add_value(bytes));
}

void Batch::guard_range_unchanged(std::string_view from, std::string_view to, std::uint64_t since_version,
                                  OnFalse on_false) {
  columns_->add_guard(v1::GUARD_KIND_RANGE_UNCHANGED, on_false, columns_->add_range(from, to, 0),
                      static_cast<std::int64_t>(since_version));
}

void Batch::guard_time_before(std::int64_t time_us) {
  columns_->check_open();
  columns_->add_guard(v1::GUARD_KIND_TIME_BEFORE, OnFalse::fail, kNoKey, time_us);
}

void Batch::guard_time_before(Key time) {
  columns_->check_key(time);
  columns_->add_guard(v1::GUARD_KIND_TIME_BEFORE, OnFalse::fail, static_cast<std::uint32_t>(time), 0);
}

void Batch::guard_time_after(std::int64_t time_us, OnFalse on_false) {
  columns_->check_open();
  columns_->add_guard(v1::GUARD_KIND_TIME_AFTER, on_false, kNoKey, time_us);
}

void Batch::guard_time_after(Key time, OnFalse on_false) {
  columns_->check_key(time);
  columns_->add_guard(v1::GUARD_KIND_TIME_AFTER, on_false, static_cast<std::uint32_t>(time), 0);
}

Op Batch::get(Key key) {
  columns_->check_key(key);
  return columns_->add_operation(v1::OPERATION_KIND_GET, static_cast<std::uint32_t>(key));
}

Op Batch::put(Key key, const Operand& value, const Expiry& expiry) {
  return columns_->add_operation(v1::OPERATION_KIND_PUT, key, value, expiry);
}

Op Batch::del(Key key) {
  columns_->check_key(key);
  return columns_->add_operation(v1::OPERATION_KIND_DELETE, static_cast<std::uint32_t>(key));
}

Op Batch::add(Key key, const Operand& delta, const Expiry& expiry) {
  return columns_->add_operation(v1::OPERATION_KIND_ADD, key, delta, expiry);
}

Op Batch::range_get(std::string_view from, std::string_view to, std::uint32_t limit) {
  return columns_->add_operation(v1::OPERATION_KIND_RANGE_GET, columns_->add_range(from, to, limit));
}

Op Batch::delete_range(std::string_view from, std::string_view to, std::uint32_t limit) {
  return columns_->add_operation(v1::OPERATION_KIND_DELETE_RANGE, columns_->add_range(from, to, limit));
}

Op Batch::range_get_reverse(std::string_view from, std::string_view to, std::uint32_t limit) {
  return columns_->add_operation(v1::OPERATION_KIND_RANGE_GET_REVERSE, columns_->add_range(from, to, limit));
}

void Batch::otherwise() {
  Columns& c = *columns_;
  if (!c.open || c.in_else) c.report("otherwise() outside of begin() and end(), or a second time in a transaction");
  c.in_else = true;
  c.list_begin = c.message.operation_key_size();
  c.then_end = static_cast<std::uint32_t>(c.list_begin);
}

void Batch::end() {
  Columns& c = *columns_;
  if (!c.open) c.report("end() without begin()");
  c.open = false;
  const int index = c.size();
  const auto operations = static_cast<std::uint32_t>(c.message.operation_key_size());
  const bool has_else = c.in_else && c.then_end != operations;
  auto* else_ends = c.message.mutable_else_ends();
  if (has_else && else_ends->empty()) *else_ends = c.message.then_ends();
  c.message.add_guard_ends(static_cast<std::uint32_t>(c.message.guard_key_size()));
  c.message.add_then_ends(has_else ? c.then_end : operations);
  if (has_else || !else_ends->empty()) else_ends->Add(operations);
  append_optional(c.message.mutable_precedence(), static_cast<std::size_t>(index), c.precedence);
  append_optional(c.message.mutable_wait_timeout_us(), index, c.wait_timeout_us, std::uint64_t{0});
  append_optional(c.message.mutable_expire_runs_else(), static_cast<std::size_t>(index), c.expire_runs_else ? 1 : 0);
}

std::size_t Batch::size() const { return static_cast<std::size_t>(columns_->size()); }

void Batch::clear() {
  Columns& c = *columns_;
  c.message.Clear();
  c.misuse.clear();
  c.open = c.in_else = false;
  c.keys = 0;
}

}  // namespace kilokv::client
