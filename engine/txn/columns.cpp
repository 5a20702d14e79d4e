#include "engine/txn/columns.hpp"

#include <algorithm>
#include <cstring>

#include "engine/base/check.hpp"
#include "engine/base/key_hash.hpp"
#include "engine/txn/kinds.hpp"

namespace kilokv::engine {
namespace {

// Calls f with every column, always in the same order.
template <class Columns, class F>
void for_each_column(Columns& c, const F& f) {
  f(c.precedence), f(c.wait_timeout_us), f(c.expire_runs_else), f(c.guard_end), f(c.then_end), f(c.else_end);
  f(c.key_id), f(c.key_end), f(c.key_bytes);
  f(c.guard_kind), f(c.guard_on_false), f(c.guard_key), f(c.guard_other), f(c.guard_operand);
  f(c.op_kind), f(c.op_operand), f(c.op_key), f(c.op_value);
  f(c.range_from_end), f(c.range_to_end), f(c.range_limit), f(c.range_bytes);
  f(c.value_end), f(c.value_bytes);
  f(c.expiry_op), f(c.expiry_kind), f(c.expiry_us);
}

std::uint32_t size32(std::size_t size) {
  KILOKV_CHECK(size <= UINT32_MAX);
  return static_cast<std::uint32_t>(size);
}

std::uint32_t start_of(const Column<std::uint32_t>& ends, std::size_t i) { return i == 0 ? 0 : ends[i - 1]; }

std::string_view slice(const Column<char>& bytes, std::size_t begin, std::size_t end) {
  return {bytes.data() + begin, end - begin};
}

bool is_range_guard(std::uint8_t kind) { return uses_range(static_cast<GuardKind>(kind)); }
bool is_bytes_guard(std::uint8_t kind) { return takes_bytes(static_cast<GuardKind>(kind)); }
bool is_range_op(std::uint8_t kind) { return uses_range(static_cast<OpKind>(kind)); }
bool is_bytes_operand(std::uint8_t operand) { return operand == static_cast<std::uint8_t>(Operand::bytes); }

// Elements [begin, end) of a group of columns, and how many references to the group were counted.
struct Extent {
  std::uint32_t begin = kNone;
  std::uint32_t end = 0;
  std::size_t references = 0;

  void add(std::uint32_t i) {
    begin = std::min(begin, i);
    end = std::max(end, i + 1);
    ++references;
  }
  void close() {
    if (references == 0) begin = end = 0;
  }
  bool dense() const { return end - begin <= 2 * references + 16; }
};

// The elements that transactions [begin, end) refer to.
struct Footprint {
  Extent keys, ranges, values;

  static Footprint all(const TransactionColumns& c) {
    Footprint f;
    f.keys = {0, size32(c.key_end.size()), 0};
    f.ranges = {0, size32(c.range_to_end.size()), 0};
    f.values = {0, size32(c.value_end.size()), 0};
    return f;
  }
  static Footprint of(const TransactionColumns& c, std::uint32_t guard_begin, std::uint32_t guard_end,
                      std::uint32_t op_begin, std::uint32_t op_end) {
    Footprint f;
    for (std::uint32_t g = guard_begin; g < guard_end; ++g) {
      if (c.guard_key[g] != kNone) (is_range_guard(c.guard_kind[g]) ? f.ranges : f.keys).add(c.guard_key[g]);
      if (c.guard_other[g] != kNone) f.keys.add(c.guard_other[g]);
      if (is_bytes_guard(c.guard_kind[g])) f.values.add(static_cast<std::uint32_t>(c.guard_operand[g]));
    }
    for (std::uint32_t i = op_begin; i < op_end; ++i) {
      (is_range_op(c.op_kind[i]) ? f.ranges : f.keys).add(c.op_key[i]);
      if (is_bytes_operand(c.op_operand[i])) f.values.add(static_cast<std::uint32_t>(c.op_value[i]));
    }
    f.keys.close(), f.ranges.close(), f.values.close();
    return f;
  }
  bool dense() const { return keys.dense() && ranges.dense() && values.dense(); }
};

template <class T>
void copy_slice(const Column<T>& from, std::size_t begin, std::size_t end, Column<T>* to) {
  to->insert(to->end(), from.data() + begin, from.data() + end);
}

// Copies [begin, end) and adds `delta` (modulo 2^32) to each copy. Ends and indices are both rebased in this way.
void copy_rebased(const Column<std::uint32_t>& from, std::size_t begin, std::size_t end, std::uint32_t delta,
                  Column<std::uint32_t>* to) {
  copy_slice(from, begin, end, to);
  std::uint32_t* const copied = to->data() + (to->size() - (end - begin));
  for (std::size_t i = 0; i < end - begin; ++i) copied[i] += delta;
}

void copy_transactions(const TransactionColumns& from, std::size_t begin, std::size_t end, TransactionColumns* to) {
  copy_slice(from.precedence, begin, end, &to->precedence);
  copy_slice(from.wait_timeout_us, begin, end, &to->wait_timeout_us);
  copy_slice(from.expire_runs_else, begin, end, &to->expire_runs_else);
  const std::uint32_t guard_delta = size32(to->guard_kind.size()) - from.guard_begin(begin);
  const std::uint32_t op_delta = size32(to->op_kind.size()) - from.then_begin(begin);
  copy_rebased(from.guard_end, begin, end, guard_delta, &to->guard_end);
  copy_rebased(from.then_end, begin, end, op_delta, &to->then_end);
  copy_rebased(from.else_end, begin, end, op_delta, &to->else_end);
}

void copy_keys(const TransactionColumns& from, Extent keys, TransactionColumns* to) {
  if (keys.begin == keys.end) return;
  const std::uint32_t bytes_begin = start_of(from.key_end, keys.begin);
  const std::uint32_t delta = size32(to->key_bytes.size()) - bytes_begin;
  copy_slice(from.key_id, keys.begin, keys.end, &to->key_id);
  copy_slice(from.key_bytes, bytes_begin, from.key_end[keys.end - 1], &to->key_bytes);
  copy_rebased(from.key_end, keys.begin, keys.end, delta, &to->key_end);
}

void copy_ranges(const TransactionColumns& from, Extent ranges, TransactionColumns* to) {
  if (ranges.begin == ranges.end) return;
  const std::uint32_t bytes_begin = start_of(from.range_to_end, ranges.begin);
  const std::uint32_t delta = size32(to->range_bytes.size()) - bytes_begin;
  copy_slice(from.range_limit, ranges.begin, ranges.end, &to->range_limit);
  copy_slice(from.range_bytes, bytes_begin, from.range_to_end[ranges.end - 1], &to->range_bytes);
  copy_rebased(from.range_from_end, ranges.begin, ranges.end, delta, &to->range_from_end);
  copy_rebased(from.range_to_end, ranges.begin, ranges.end, delta, &to->range_to_end);
}

void copy_values(const TransactionColumns& from, Extent values, TransactionColumns* to) {
  if (values.begin == values.end) return;
  const std::uint32_t bytes_begin = start_of(from.value_end, values.begin);
  const std::uint32_t delta = size32(to->value_bytes.size()) - bytes_begin;
  copy_slice(from.value_bytes, bytes_begin, from.value_end[values.end - 1], &to->value_bytes);
  copy_rebased(from.value_end, values.begin, values.end, delta, &to->value_end);
}

// What the indices into each group of columns are shifted by, modulo 2^32.
struct IndexDeltas {
  std::uint32_t key, range, value;
};

void copy_guards(const TransactionColumns& from, std::uint32_t begin, std::uint32_t end, IndexDeltas delta,
                 TransactionColumns* to) {
  const std::size_t base = to->guard_kind.size();
  copy_slice(from.guard_kind, begin, end, &to->guard_kind);
  copy_slice(from.guard_on_false, begin, end, &to->guard_on_false);
  copy_slice(from.guard_key, begin, end, &to->guard_key);
  copy_slice(from.guard_other, begin, end, &to->guard_other);
  copy_slice(from.guard_operand, begin, end, &to->guard_operand);
  const std::uint8_t* const kind = to->guard_kind.data() + base;
  std::uint32_t* const key = to->guard_key.data() + base;
  std::uint32_t* const other = to->guard_other.data() + base;
  std::int64_t* const operand = to->guard_operand.data() + base;
  const auto value_shift = static_cast<std::int32_t>(delta.value);
  for (std::uint32_t i = 0; i < end - begin; ++i) {
    key[i] += key[i] == kNone ? 0 : is_range_guard(kind[i]) ? delta.range : delta.key;
    other[i] += other[i] == kNone ? 0 : delta.key;
    operand[i] += is_bytes_guard(kind[i]) ? value_shift : 0;
  }
}

void copy_operations(const TransactionColumns& from, std::uint32_t begin, std::uint32_t end, IndexDeltas delta,
                     TransactionColumns* to) {
  const std::size_t base = to->op_kind.size();
  copy_slice(from.op_kind, begin, end, &to->op_kind);
  copy_slice(from.op_operand, begin, end, &to->op_operand);
  copy_slice(from.op_key, begin, end, &to->op_key);
  copy_slice(from.op_value, begin, end, &to->op_value);
  const std::uint8_t* const kind = to->op_kind.data() + base;
  const std::uint8_t* const operand = to->op_operand.data() + base;
  std::uint32_t* const key = to->op_key.data() + base;
  std::int64_t* const value = to->op_value.data() + base;
  const auto value_shift = static_cast<std::int32_t>(delta.value);
  for (std::uint32_t i = 0; i < end - begin; ++i) {
    key[i] += is_range_op(kind[i]) ? delta.range : delta.key;
    value[i] += is_bytes_operand(operand[i]) ? value_shift : 0;
  }
}

// Those of the operations [begin, end), which are copied next.
void copy_expiries(const TransactionColumns& from, std::uint32_t begin, std::uint32_t end, TransactionColumns* to) {
  const auto place = [&](std::uint32_t op) {
    return static_cast<std::size_t>(std::lower_bound(from.expiry_op.begin(), from.expiry_op.end(), op) -
                                    from.expiry_op.begin());
  };
  const std::size_t first = place(begin), last = place(end);
  copy_rebased(from.expiry_op, first, last, size32(to->op_kind.size()) - begin, &to->expiry_op);
  copy_slice(from.expiry_kind, first, last, &to->expiry_kind);
  copy_slice(from.expiry_us, first, last, &to->expiry_us);
}

Extent only(std::int64_t i) { return {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i) + 1, 1}; }

// Copies one guard or operation, and everything that it refers to. This serves transactions that refer to a few keys
// far apart: to copy everything between these keys would cost more.
IndexDeltas copy_referred(const TransactionColumns& from, bool range, std::uint32_t index, std::uint32_t other,
                          std::int64_t value, TransactionColumns* to) {
  IndexDeltas delta{size32(to->key_end.size()) - index, size32(to->range_to_end.size()) - index,
                    size32(to->value_end.size()) - static_cast<std::uint32_t>(value < 0 ? 0 : value)};
  if (index != kNone) range ? copy_ranges(from, only(index), to) : copy_keys(from, only(index), to);
  if (other != kNone) copy_keys(from, only(other), to);
  if (value >= 0) copy_values(from, only(value), to);
  return delta;
}

void copy_sparse(const TransactionColumns& from, std::uint32_t guard_begin, std::uint32_t guard_end,
                 std::uint32_t op_begin, std::uint32_t op_end, TransactionColumns* to) {
  for (std::uint32_t g = guard_begin; g < guard_end; ++g) {
    const std::uint8_t kind = from.guard_kind[g];
    const IndexDeltas delta = copy_referred(from, is_range_guard(kind), from.guard_key[g], from.guard_other[g],
                                            is_bytes_guard(kind) ? from.guard_operand[g] : -1, to);
    copy_guards(from, g, g + 1, delta, to);
    if (from.guard_other[g] != kNone) to->guard_other.back() = size32(to->key_end.size()) - 1;
  }
  for (std::uint32_t i = op_begin; i < op_end; ++i) {
    const IndexDeltas delta = copy_referred(from, is_range_op(from.op_kind[i]), from.op_key[i], kNone,
                                            is_bytes_operand(from.op_operand[i]) ? from.op_value[i] : -1, to);
    copy_operations(from, i, i + 1, delta, to);
  }
}

}  // namespace

TransactionColumns::TransactionColumns(std::pmr::memory_resource* memory)
    : precedence(memory),
      wait_timeout_us(memory),
      expire_runs_else(memory),
      guard_end(memory),
      then_end(memory),
      else_end(memory),
      key_id(memory),
      key_end(memory),
      key_bytes(memory),
      guard_kind(memory),
      guard_on_false(memory),
      guard_key(memory),
      guard_other(memory),
      guard_operand(memory),
      op_kind(memory),
      op_operand(memory),
      op_key(memory),
      op_value(memory),
      range_from_end(memory),
      range_to_end(memory),
      range_limit(memory),
      range_bytes(memory),
      value_end(memory),
      value_bytes(memory),
      expiry_op(memory),
      expiry_kind(memory),
      expiry_us(memory) {}

std::size_t TransactionColumns::memory_bytes() const {
  std::size_t bytes = 0;
  for_each_column(*this, [&](const auto& column) { bytes += column.size() * sizeof(column[0]); });
  return bytes;
}

std::size_t TransactionColumns::capacity_bytes() const {
  std::size_t bytes = 0;
  for_each_column(*this, [&](const auto& column) { bytes += column.capacity() * sizeof(column[0]); });
  return bytes;
}

void TransactionColumns::clear() {
  for_each_column(*this, [](auto& column) { column.clear(); });
}

void TransactionColumns::append(const TransactionColumns& from, std::size_t begin, std::size_t end) {
  if (begin == end) return;
  const std::uint32_t first_guard = from.guard_begin(begin);
  const std::uint32_t last_guard = from.guard_end[end - 1];
  const std::uint32_t first_op = from.then_begin(begin);
  const std::uint32_t last_op = from.else_end[end - 1];
  copy_transactions(from, begin, end, this);
  if (!from.expiry_op.empty()) copy_expiries(from, first_op, last_op, this);
  const bool whole = begin == 0 && end == from.size();
  const Footprint footprint =
      whole ? Footprint::all(from) : Footprint::of(from, first_guard, last_guard, first_op, last_op);
  if (!whole && !footprint.dense()) return copy_sparse(from, first_guard, last_guard, first_op, last_op, this);
  const IndexDeltas delta{size32(key_end.size()) - footprint.keys.begin,
                          size32(range_to_end.size()) - footprint.ranges.begin,
                          size32(value_end.size()) - footprint.values.begin};
  copy_keys(from, footprint.keys, this);
  copy_ranges(from, footprint.ranges, this);
  copy_values(from, footprint.values, this);
  copy_guards(from, first_guard, last_guard, delta, this);
  copy_operations(from, first_op, last_op, delta, this);
}

void TransactionColumns::keep(std::span<const std::uint32_t> transactions) {
  const auto move = [](auto* column, std::uint32_t begin, std::uint32_t end, std::size_t to) {
    std::copy(column->begin() + begin, column->begin() + end, column->begin() + static_cast<std::ptrdiff_t>(to));
  };
  std::size_t count = 0, expiries = 0, expiry = 0;
  std::uint32_t guards = 0, operations = 0;
  for (const std::uint32_t t : transactions) {
    const std::uint32_t first_guard = guard_begin(t), first_then = then_begin(t), first_else = then_end[t];
    const std::uint32_t last_guard = guard_end[t], last_else = else_end[t];
    for (auto* column : {&guard_kind, &guard_on_false}) move(column, first_guard, last_guard, guards);
    for (auto* column : {&guard_key, &guard_other}) move(column, first_guard, last_guard, guards);
    move(&guard_operand, first_guard, last_guard, guards);
    for (auto* column : {&op_kind, &op_operand}) move(column, first_then, last_else, operations);
    move(&op_key, first_then, last_else, operations);
    move(&op_value, first_then, last_else, operations);
    while (expiry < expiry_op.size() && expiry_op[expiry] < first_then) ++expiry;
    for (; expiry < expiry_op.size() && expiry_op[expiry] < last_else; ++expiry, ++expiries) {
      expiry_op[expiries] = expiry_op[expiry] - first_then + operations;
      expiry_kind[expiries] = expiry_kind[expiry];
      expiry_us[expiries] = expiry_us[expiry];
    }
    precedence[count] = precedence[t];
    wait_timeout_us[count] = wait_timeout_us[t];
    expire_runs_else[count] = expire_runs_else[t];
    guard_end[count] = guards += last_guard - first_guard;
    then_end[count] = operations + (first_else - first_then);
    else_end[count] = operations += last_else - first_then;
    ++count;
  }
  precedence.resize(count), wait_timeout_us.resize(count), expire_runs_else.resize(count);
  guard_end.resize(count), then_end.resize(count), else_end.resize(count);
  guard_kind.resize(guards), guard_on_false.resize(guards), guard_key.resize(guards), guard_other.resize(guards);
  guard_operand.resize(guards);
  op_kind.resize(operations), op_operand.resize(operations), op_key.resize(operations), op_value.resize(operations);
  expiry_op.resize(expiries), expiry_kind.resize(expiries), expiry_us.resize(expiries);
}

std::string_view TransactionColumns::value(std::size_t i) const {
  return slice(value_bytes, start_of(value_end, i), value_end[i]);
}

std::string_view TransactionColumns::range_from(std::size_t i) const {
  return slice(range_bytes, start_of(range_to_end, i), range_from_end[i]);
}

std::string_view TransactionColumns::range_to(std::size_t i) const {
  return slice(range_bytes, range_from_end[i], range_to_end[i]);
}

std::string pack_transaction(const TransactionColumns& columns, std::size_t t) {
  thread_local TransactionColumns one;
  one.clear();
  one.append(columns, t, t + 1);
  std::string packed;
  packed.reserve(one.memory_bytes() + 32 * sizeof(std::uint32_t));
  for_each_column(one, [&](const auto& column) {
    const std::uint32_t count = size32(column.size());
    packed.append(reinterpret_cast<const char*>(&count), sizeof(count));
    packed.append(reinterpret_cast<const char*>(column.data()), count * sizeof(column[0]));
  });
  return packed;
}

void unpack_transaction(std::string_view packed, TransactionColumns* columns) {
  thread_local TransactionColumns one;
  for_each_column(one, [&](auto& column) {
    std::uint32_t count = 0;
    KILOKV_CHECK(packed.size() >= sizeof(count));
    std::memcpy(&count, packed.data(), sizeof(count));
    packed.remove_prefix(sizeof(count));
    const std::size_t bytes = count * sizeof(column[0]);
    KILOKV_CHECK(packed.size() >= bytes);
    column.resize(count);
    if (bytes != 0) std::memcpy(column.data(), packed.data(), bytes);
    packed.remove_prefix(bytes);
  });
  columns->append(one, 0, one.size());
}

}  // namespace kilokv::engine
