#include "engine/txn/validate.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/txn/kinds.hpp"

namespace kilokv::engine {
namespace {

std::string count_of(std::uint64_t count, const char* unit) { return std::to_string(count) + " " + unit; }

std::string numbers(unsigned first, unsigned last) { return std::to_string(first) + " to " + std::to_string(last); }

Status invalid(std::string field, std::string limit, std::string actual, const char* setting = "") {
  return Status::invalid({std::move(field), std::move(limit), std::move(actual), setting});
}

Status column_length(const char* name, std::size_t expected, std::size_t actual) {
  return invalid(std::string("columns.") + name, count_of(expected, "elements, as in the other columns of its group"),
                 count_of(actual, "elements"));
}

// Whether `ends` never decreases and ends at `total`.
bool ends_cover(const Column<std::uint32_t>& ends, std::size_t total) {
  std::uint32_t previous = 0;
  bool sorted = true;
  for (const std::uint32_t end : ends) {
    sorted &= end >= previous;
    previous = end;
  }
  return sorted && previous == total;
}

Status ends_broken(const char* name, std::size_t total) {
  return invalid(std::string("columns.") + name,
                 "ends that never decrease, and of which the last is " + std::to_string(total), "");
}

// Runs the checks in this order: lengths of columns, ends, element sizes, transactions. Each check relies on those
// before it.
class Validator {
 public:
  Validator(const TransactionColumns& columns, const TransactionLimits& limits) : c_(columns), limits_(limits) {}

  Status run() {
    if (Status s = check_lengths(); !s.ok()) return s;
    if (Status s = check_ends(); !s.ok()) return s;
    if (Status s = check_sizes(); !s.ok()) return s;
    if (Status s = check_expiries(); !s.ok()) return s;
    range_used_.assign(c_.range_limit.size(), 0);
    for (std::size_t t = 0; t < c_.size(); ++t) {
      if (!transaction_ok(t)) [[unlikely]]
        return explain(t);
    }
    if (ranges_used_ != c_.range_limit.size()) {
      return invalid("columns.range_limit", "a guard or operation for each range",
                     count_of(c_.range_limit.size() - ranges_used_, "unused ranges"));
    }
    return {};
  }

 private:
  Status check_lengths() const {
    struct Length {
      const char* name;
      std::size_t expected, actual;
    };
    const std::size_t n = c_.guard_end.size(), k = c_.key_end.size(), g = c_.guard_kind.size(), m = c_.op_kind.size(),
                      r = c_.range_limit.size();
    for (const Length& l : {Length{"precedence", n, c_.precedence.size()},
                            {"wait_timeout_us", n, c_.wait_timeout_us.size()},
                            {"expire_runs_else", n, c_.expire_runs_else.size()},
                            {"then_ends", n, c_.then_end.size()},
                            {"else_ends", n, c_.else_end.size()},
                            {"key_ids", k, c_.key_id.size()},
                            {"guard_on_false", g, c_.guard_on_false.size()},
                            {"guard_key", g, c_.guard_key.size()},
                            {"guard_other_key", g, c_.guard_other.size()},
                            {"guard_operand", g, c_.guard_operand.size()},
                            {"operation_operand", m, c_.op_operand.size()},
                            {"operation_key", m, c_.op_key.size()},
                            {"operation_value", m, c_.op_value.size()},
                            {"range_from_ends", r, c_.range_from_end.size()},
                            {"range_to_ends", r, c_.range_to_end.size()},
                            {"expiry_kind", c_.expiry_op.size(), c_.expiry_kind.size()},
                            {"expiry_us", c_.expiry_op.size(), c_.expiry_us.size()}}) {
      if (l.expected != l.actual) return column_length(l.name, l.expected, l.actual);
    }
    if (n == 0) {
      return invalid("transactions", "at least 1 transaction", "0 transactions").because(ErrorReason::missing_field);
    }
    if (n > limits_.request_transactions_max) {
      return invalid("transactions", count_of(limits_.request_transactions_max, "transactions"),
                     count_of(n, "transactions"), "--request-transactions-max");
    }
    return {};
  }

  Status check_ends() const {
    if (!ends_cover(c_.guard_end, c_.guard_kind.size())) return ends_broken("guard_ends", c_.guard_kind.size());
    if (!ends_cover(c_.else_end, c_.op_kind.size())) return ends_broken("else_ends", c_.op_kind.size());
    bool between = true;
    for (std::size_t t = 0; t < c_.size(); ++t) {
      between &= c_.then_end[t] >= c_.then_begin(t) && c_.then_end[t] <= c_.else_end[t];
    }
    if (!between) return invalid("columns.then_ends", "between the else_ends around them", "");
    if (!ends_cover(c_.key_end, c_.key_bytes.size())) return ends_broken("key_ends", c_.key_bytes.size());
    if (!ends_cover(c_.value_end, c_.value_bytes.size())) return ends_broken("value_ends", c_.value_bytes.size());
    if (!ends_cover(c_.range_to_end, c_.range_bytes.size())) return ends_broken("range_to_ends", c_.range_bytes.size());
    between = true;
    for (std::size_t i = 0; i < c_.range_limit.size(); ++i) {
      between &= c_.range_from_end[i] >= (i == 0 ? 0 : c_.range_to_end[i - 1]);
      between &= c_.range_from_end[i] <= c_.range_to_end[i];
    }
    if (!between) return invalid("columns.range_from_ends", "between the range_to_ends around them", "");
    return {};
  }

  // Keys and values that no transaction refers to are checked too. Only when a size is wrong does the check search for
  // the transaction that refers to it.
  Status check_sizes() const {
    const std::uint32_t key_bytes_max = std::min(limits_.key_bytes_max, kKeyBytesMax);
    std::uint32_t previous = 0;
    for (std::size_t i = 0; i < c_.key_end.size(); ++i) {
      const std::uint32_t bytes = c_.key_end[i] - previous;
      previous = c_.key_end[i];
      if (bytes - 1 >= key_bytes_max) [[unlikely]] {  // 0 bytes wraps around
        return invalid(owner_of_key(i), "1 to " + count_of(key_bytes_max, "bytes"), count_of(bytes, "bytes"),
                       "--key-bytes-max");
      }
    }
    previous = 0;
    for (std::size_t i = 0; i < c_.value_end.size(); ++i) {
      const std::uint32_t bytes = c_.value_end[i] - previous;
      previous = c_.value_end[i];
      if (bytes > limits_.value_bytes_max) {
        return invalid(owner_of_value(i), count_of(limits_.value_bytes_max, "bytes"), count_of(bytes, "bytes"),
                       "--value-bytes-max");
      }
    }
    return {};
  }

  Status check_expiries() const {
    std::uint32_t least = 0;  // that the next index may be
    for (std::size_t i = 0; i < c_.expiry_op.size(); ++i) {
      const std::uint32_t op = c_.expiry_op[i];
      if (op < least || op >= c_.op_kind.size()) {
        return invalid("columns.expiry_operation", "ascending indices into the operations", std::to_string(op));
      }
      least = op + 1;
      const auto kind = static_cast<Expiry>(c_.expiry_kind[i]);
      if (kind > Expiry::after) {
        return invalid("columns.expiry_kind", numbers(0, static_cast<unsigned>(Expiry::after)),
                       std::to_string(c_.expiry_kind[i]));
      }
      const bool is_ttl = kind == Expiry::after;
      const std::int64_t most = is_ttl ? limits_.ttl_us_max : kNever;
      const std::string path = operation_path(op) + (is_ttl ? ".ttl_us" : ".expires_at_us");
      if (!takes_operand(static_cast<OpKind>(c_.op_kind[op]))) {
        return invalid(path, "only in a PUT or an ADD", "").because(ErrorReason::not_allowed);
      }
      if (c_.expiry_us[i] < 1 || c_.expiry_us[i] > most) {
        return invalid(path, "1 to " + std::to_string(most) + " us", std::to_string(c_.expiry_us[i]) + " us",
                       is_ttl ? "--ttl-max" : "");
      }
    }
    return {};
  }

  bool transaction_ok(std::size_t t) {
    const std::uint32_t guards = c_.guard_end[t] - c_.guard_begin(t);
    const std::uint32_t operations = c_.else_end[t] - c_.then_begin(t);
    if (guards + operations == 0 || guards > limits_.guards_max || operations > limits_.operations_max) return false;
    if (c_.wait_timeout_us[t] < 0 || c_.wait_timeout_us[t] > limits_.wait_timeout_us_max) return false;
    if (c_.expire_runs_else[t] > 1) return false;
    for (std::uint32_t g = c_.guard_begin(t); g < c_.guard_end[t]; ++g) {
      if (!guard_ok(g)) return false;
    }
    range_keys_ = 0;
    return list_ok(c_.then_begin(t), c_.then_end[t]) && list_ok(c_.then_end[t], c_.else_end[t]) &&
           range_keys_ <= limits_.transaction_keys_max;
  }

  bool list_ok(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i) {
      if (!operation_ok(begin, i)) return false;
    }
    return true;
  }

  bool key_ok(std::uint32_t i) const { return i < c_.key_end.size(); }
  bool guard_key_ok(GuardKind kind, std::uint32_t i) const { return key_ok(i) || (i == kNone && compares_time(kind)); }
  bool value_ok(std::int64_t i) const { return i >= 0 && static_cast<std::uint64_t>(i) < c_.value_end.size(); }
  static bool version_ok(std::int64_t v) { return v >= 0 && static_cast<Version>(v) <= kVersionMax; }

  bool guard_ok(std::uint32_t g) {
    const std::int64_t operand = c_.guard_operand[g];
    const auto kind = static_cast<GuardKind>(c_.guard_kind[g]);
    const auto wait = static_cast<std::uint8_t>(OnFalse::wait);
    if (c_.guard_on_false[g] > wait || (c_.guard_on_false[g] == wait && !may_wait(kind))) return false;
    if (uses_range(kind)) {
      return version_ok(operand) && c_.guard_other[g] == kNone && use_range(c_.guard_key[g], true);
    }
    const std::uint32_t key = c_.guard_key[g];
    if (!guard_key_ok(kind, key)) return false;
    const bool other_ok = c_.guard_other[g] == kNone;
    switch (kind) {
      case GuardKind::exists:
      case GuardKind::absent: return other_ok;
      case GuardKind::equal:
      case GuardKind::not_equal:
      case GuardKind::less:
      case GuardKind::less_equal:
      case GuardKind::greater:
      case GuardKind::greater_equal: return other_ok || key_ok(c_.guard_other[g]);
      case GuardKind::version_equal:
      case GuardKind::unchanged: return other_ok && version_ok(operand);
      case GuardKind::bytes_equal: return other_ok && value_ok(operand);
      case GuardKind::time_before:
      case GuardKind::time_after: return other_ok && (key != kNone || operand >= 0);
      case GuardKind::range_unchanged: break;
    }
    return false;
  }

  bool operation_ok(std::uint32_t list_begin, std::uint32_t i) {
    const auto kind = static_cast<OpKind>(c_.op_kind[i]);
    switch (kind) {
      case OpKind::get:
      case OpKind::del: return c_.op_operand[i] == 0 && key_ok(c_.op_key[i]);
      case OpKind::put:
      case OpKind::add: return key_ok(c_.op_key[i]) && operand_ok(list_begin, i, kind);
      case OpKind::range_get:
      case OpKind::delete_range:
      case OpKind::range_get_reverse: return c_.op_operand[i] == 0 && use_range(c_.op_key[i], false);
    }
    return false;
  }

  bool operand_ok(std::uint32_t list_begin, std::uint32_t i, OpKind kind) const {
    const std::int64_t value = c_.op_value[i];
    switch (static_cast<Operand>(c_.op_operand[i])) {
      case Operand::integer:
      case Operand::commit_version:
      case Operand::batch_time: return true;
      case Operand::bytes: return takes_bytes(kind) && value_ok(value);
      case Operand::get:
      case Operand::get_negated:
        return value >= 0 && value < i - list_begin &&
               may_be_operand(static_cast<OpKind>(c_.op_kind[list_begin + static_cast<std::uint32_t>(value)]));
    }
    return false;
  }

  bool range_ok(std::uint32_t i, bool in_guard) const {
    const std::string_view from = c_.range_from(i), to = c_.range_to(i);
    const std::uint32_t limit = c_.range_limit[i];
    const std::uint32_t key_bytes_max = std::min(limits_.key_bytes_max, kKeyBytesMax);
    if (from.size() > key_bytes_max || to.size() > key_bytes_max) return false;
    if (!to.empty() && from >= to) return false;
    return in_guard ? limit == 0 : limit >= 1 && limit <= limits_.range_keys_max;
  }

  bool use_range(std::uint32_t i, bool in_guard) {
    if (i >= c_.range_limit.size() || range_used_[i] != 0 || !range_ok(i, in_guard)) return false;
    range_used_[i] = 1;
    ++ranges_used_;
    range_keys_ += c_.range_limit[i];
    return true;
  }

  // The error paths: say exactly what is wrong with transaction t.
  Status explain(std::size_t t) const;
  Status explain_guard(const std::string& path, std::uint32_t g) const;
  Status explain_operation(const std::string& path, std::uint32_t list_begin, std::uint32_t i) const;
  Status explain_range(const std::string& path, std::uint32_t i, bool in_guard) const;
  std::string guard_path(std::uint32_t g) const;
  std::string operation_path(std::uint32_t i) const;
  std::string owner_of_key(std::size_t key) const;
  std::string owner_of_value(std::size_t value) const;

  const TransactionColumns& c_;
  const TransactionLimits& limits_;
  std::vector<std::uint8_t> range_used_;
  std::size_t ranges_used_ = 0;
  std::uint64_t range_keys_ = 0;  // the sum of the limits of the range operations of the current transaction
};

std::string Validator::guard_path(std::uint32_t g) const {
  const auto t = std::upper_bound(c_.guard_end.begin(), c_.guard_end.end(), g) - c_.guard_end.begin();
  return "transactions[" + std::to_string(t) + "].guards[" + std::to_string(g - c_.guard_begin(t)) + "]";
}

std::string Validator::operation_path(std::uint32_t i) const {
  const auto t = std::upper_bound(c_.else_end.begin(), c_.else_end.end(), i) - c_.else_end.begin();
  const bool in_else = i >= c_.then_end[t];
  const std::uint32_t begin = in_else ? c_.then_end[t] : c_.then_begin(t);
  return "transactions[" + std::to_string(t) + (in_else ? "].else[" : "].then[") + std::to_string(i - begin) + "]";
}

// This runs before the kinds are checked. A kind that is not known counts as one that names a key.
std::string Validator::owner_of_key(std::size_t key) const {
  for (std::uint32_t g = 0; g < c_.guard_kind.size(); ++g) {
    const bool range = uses_range(static_cast<GuardKind>(c_.guard_kind[g]));
    if (!range && c_.guard_key[g] == key) return guard_path(g) + ".key";
    if (!range && c_.guard_other[g] == key) return guard_path(g) + ".other_key";
  }
  for (std::uint32_t i = 0; i < c_.op_kind.size(); ++i) {
    if (!uses_range(static_cast<OpKind>(c_.op_kind[i])) && c_.op_key[i] == key) {
      return operation_path(i) + ".key";
    }
  }
  return "columns.keys[" + std::to_string(key) + "]";
}

std::string Validator::owner_of_value(std::size_t value) const {
  for (std::uint32_t g = 0; g < c_.guard_kind.size(); ++g) {
    const bool bytes = takes_bytes(static_cast<GuardKind>(c_.guard_kind[g]));
    if (bytes && c_.guard_operand[g] == static_cast<std::int64_t>(value)) return guard_path(g) + ".bytes";
  }
  for (std::uint32_t i = 0; i < c_.op_kind.size(); ++i) {
    const bool bytes = c_.op_operand[i] == static_cast<std::uint8_t>(Operand::bytes);
    if (bytes && c_.op_value[i] == static_cast<std::int64_t>(value)) return operation_path(i) + ".operand.bytes";
  }
  return "columns.values[" + std::to_string(value) + "]";
}

Status Validator::explain(std::size_t t) const {
  const std::string path = "transactions[" + std::to_string(t) + "]";
  const std::uint32_t guards = c_.guard_end[t] - c_.guard_begin(t);
  const std::uint32_t operations = c_.else_end[t] - c_.then_begin(t);
  if (guards + operations == 0) {
    return invalid(path, "at least 1 guard or operation", "empty").because(ErrorReason::missing_field);
  }
  if (guards > limits_.guards_max) {
    return invalid(path + ".guards", count_of(limits_.guards_max, "guards"), count_of(guards, "guards"),
                   "--guards-max");
  }
  if (operations > limits_.operations_max) {
    return invalid(path + ".operations", count_of(limits_.operations_max, "operations, both lists together"),
                   count_of(operations, "operations"), "--operations-max");
  }
  if (c_.wait_timeout_us[t] < 0 || c_.wait_timeout_us[t] > limits_.wait_timeout_us_max) {
    return invalid(path + ".wait_timeout_us", "0 to " + std::to_string(limits_.wait_timeout_us_max) + " us",
                   std::to_string(c_.wait_timeout_us[t]) + " us", "--wait-timeout-max");
  }
  if (c_.expire_runs_else[t] > 1) {
    return invalid(path + ".expire_runs_else", "0 or 1", std::to_string(c_.expire_runs_else[t]));
  }
  for (std::uint32_t g = c_.guard_begin(t); g < c_.guard_end[t]; ++g) {
    if (Status s = explain_guard(guard_path(g), g); !s.ok()) return s;
  }
  for (std::uint32_t i = c_.then_begin(t); i < c_.else_end[t]; ++i) {
    const std::uint32_t list_begin = i < c_.then_end[t] ? c_.then_begin(t) : c_.then_end[t];
    if (Status s = explain_operation(operation_path(i), list_begin, i); !s.ok()) return s;
  }
  if (range_keys_ > limits_.transaction_keys_max) {
    return invalid(path + ".operations", count_of(limits_.transaction_keys_max, "keys of all its ranges together"),
                   count_of(range_keys_, "keys"), "--transaction-keys-max");
  }
  // All checks of single uses passed, so the error is a range that is used twice.
  return invalid(path, "one guard or operation for each range", "a range that is used twice")
      .because(ErrorReason::not_allowed);
}

Status Validator::explain_guard(const std::string& path, std::uint32_t g) const {
  const auto kind = static_cast<GuardKind>(c_.guard_kind[g]);
  if (!is_known(kind)) {
    return invalid(path + ".kind", "a known guard kind, " + numbers(kGuardKindMin, kGuardKindMax),
                   std::to_string(c_.guard_kind[g]));
  }
  if (c_.guard_on_false[g] > 1) {
    return invalid(path + ".on_false", "FAIL (0) or WAIT (1)", std::to_string(c_.guard_on_false[g]));
  }
  if (c_.guard_on_false[g] == static_cast<std::uint8_t>(OnFalse::wait) && !may_wait(kind)) {
    return invalid(path + ".on_false", "FAIL (0), because time alone never makes `time_before` true", "WAIT (1)")
        .because(ErrorReason::not_allowed);
  }
  if (uses_range(kind)) {
    if (Status s = explain_range(path, c_.guard_key[g], true); !s.ok()) return s;
  } else if (!guard_key_ok(kind, c_.guard_key[g])) {
    return invalid(path + ".key", "an index below " + count_of(c_.key_end.size(), "keys"),
                   std::to_string(c_.guard_key[g]));
  }
  if (c_.guard_other[g] != kNone && !compares_integers(kind)) {
    return invalid(path + ".other_key", "none for this kind", std::to_string(c_.guard_other[g]))
        .because(ErrorReason::not_allowed);
  }
  if (c_.guard_other[g] != kNone && !key_ok(c_.guard_other[g])) {
    return invalid(path + ".other_key", "an index below " + count_of(c_.key_end.size(), "keys"),
                   std::to_string(c_.guard_other[g]));
  }
  const std::int64_t operand = c_.guard_operand[g];
  switch (operand_of(kind)) {
    case GuardOperand::nothing:
    case GuardOperand::integer_or_key: return {};
    case GuardOperand::time_or_key:
      if (c_.guard_key[g] == kNone && operand < 0) {
        return invalid(path + ".time_us", "0 to 2^63 - 1", std::to_string(operand));
      }
      return {};
    case GuardOperand::version:
      if (!version_ok(operand)) {
        return invalid(path + ".version", "0 to 2^60 - 1", std::to_string(static_cast<std::uint64_t>(operand)));
      }
      return {};
    case GuardOperand::bytes:
      if (!value_ok(operand)) {
        return invalid(path + ".bytes", "an index below " + count_of(c_.value_end.size(), "values"),
                       std::to_string(operand));
      }
      return {};
  }
  return {};
}

Status Validator::explain_operation(const std::string& path, std::uint32_t list_begin, std::uint32_t i) const {
  const auto kind = static_cast<OpKind>(c_.op_kind[i]);
  const std::int64_t value = c_.op_value[i];
  if (!is_known(kind)) {
    return invalid(path + ".kind", "a known operation kind, " + numbers(kOpKindMin, kOpKindMax),
                   std::to_string(c_.op_kind[i]));
  }
  const bool ranged = uses_range(kind);
  if (!ranged && !key_ok(c_.op_key[i])) {
    return invalid(path + ".key", "an index below " + count_of(c_.key_end.size(), "keys"),
                   std::to_string(c_.op_key[i]));
  }
  if (!takes_operand(kind)) {
    if (c_.op_operand[i] != 0) {
      return invalid(path + ".operand", "none for this kind", std::to_string(c_.op_operand[i]))
          .because(ErrorReason::not_allowed);
    }
    return ranged ? explain_range(path, c_.op_key[i], false) : Status{};
  }
  if (operand_ok(list_begin, i, kind)) return {};
  switch (static_cast<Operand>(c_.op_operand[i])) {
    case Operand::bytes:
      if (!takes_bytes(kind)) {
        return invalid(path + ".operand.bytes", "an integer operand for ADD", "bytes")
            .because(ErrorReason::not_allowed);
      }
      return invalid(path + ".operand.bytes", "an index below " + count_of(c_.value_end.size(), "values"),
                     std::to_string(value));
    case Operand::get:
    case Operand::get_negated:
      return invalid(path + ".operand.get", "the index of an earlier GET of the same list", std::to_string(value));
    default:
      return invalid(path + ".operand", "a known operand, " + numbers(0, kOperandMax),
                     std::to_string(c_.op_operand[i]));
  }
}

Status Validator::explain_range(const std::string& path, std::uint32_t i, bool in_guard) const {
  if (i >= c_.range_limit.size()) {
    return invalid(path + ".range", "an index below " + count_of(c_.range_limit.size(), "ranges"), std::to_string(i));
  }
  const std::uint32_t key_bytes_max = std::min(limits_.key_bytes_max, kKeyBytesMax);
  const std::string_view from = c_.range_from(i), to = c_.range_to(i);
  for (const auto& [name, bound] : {std::pair{".range.from", from}, {".range.to", to}}) {
    if (bound.size() > key_bytes_max) {
      return invalid(path + name, count_of(key_bytes_max, "bytes"), count_of(bound.size(), "bytes"), "--key-bytes-max");
    }
  }
  if (!to.empty() && from >= to) return invalid(path + ".range.to", "empty or greater than `from`", "not greater");
  const std::uint32_t limit = c_.range_limit[i];
  if (in_guard && limit != 0) {
    return invalid(path + ".limit", "0 in a guard", std::to_string(limit)).because(ErrorReason::not_allowed);
  }
  if (!in_guard && (limit == 0 || limit > limits_.range_keys_max)) {
    return invalid(path + ".limit", "1 to " + count_of(limits_.range_keys_max, "keys"), count_of(limit, "keys"),
                   "--range-keys-max");
  }
  return {};
}

}  // namespace

Status validate(const TransactionColumns& columns, const TransactionLimits& limits) {
  return Validator(columns, limits).run();
}

}  // namespace kilokv::engine
