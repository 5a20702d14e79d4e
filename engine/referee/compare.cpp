#include "engine/referee/compare.hpp"

#include <algorithm>
#include <functional>

#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

namespace {

constexpr std::size_t kDescribedBytesMax = 40;

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::undecided: return "UNDECIDED";
    case Outcome::committed: return "COMMITTED";
    case Outcome::guard_failed: return "GUARD_FAILED";
    case Outcome::wait_expired: return "WAIT_EXPIRED";
    case Outcome::overflow: return "OVERFLOW";
    case Outcome::type_mismatch: return "TYPE_MISMATCH";
    case Outcome::postponed: return "POSTPONED";
  }
  return "unknown";
}

const char* name_of(FailedIn list) {
  switch (list) {
    case FailedIn::none: return "none";
    case FailedIn::guards: return "guards";
    case FailedIn::then_ops: return "then";
    case FailedIn::else_ops: return "else";
  }
  return "unknown";
}

std::string describe_bytes(std::string_view bytes) {
  const bool is_long = bytes.size() > kDescribedBytesMax;
  return '"' + std::string(bytes.substr(0, kDescribedBytesMax)) + (is_long ? "...\" of " : "\" of ") +
         std::to_string(bytes.size()) + " bytes";
}

// Compares the fields of one transaction. After the first difference it skips all others.
class TransactionComparison {
 public:
  TransactionComparison(const Execution& execution, const ExpectedTransaction& expected)
      : execution_(execution), results_(execution.results), expected_(expected), run_(expected.run) {}

  Status compare() {
    const std::size_t t = expected_.t;
    field("outcome", name_of(expected_.outcome), name_of(static_cast<Outcome>(results_.outcome[t])));
    field("failed_in", name_of(run_.failed_in), name_of(static_cast<FailedIn>(results_.failed_in[t])));
    field("failed_index", run_.failed_index, results_.failed_index[t]);
    if (expected_.outcome != Outcome::postponed) field("rank", expected_.rank, results_.rank[t]);
    field("wrote", run_.writes.empty() ? 0 : 1, results_.wrote[t]);
    const bool guard_decided = run_.failed_in == FailedIn::guards && expected_.outcome != Outcome::type_mismatch;
    if (guard_decided) cell("guard value", run_.guard, results_.guard_cell[t], true);
    for (std::size_t i = 0; i < run_.effects.size() && status_.ok(); ++i) effect(i);
    return status_;
  }

 private:
  std::string where(const std::string& field) const {
    return "transaction " + std::to_string(expected_.t) + " (rank " + std::to_string(expected_.rank) + "): " + field;
  }

  void field(const std::string& name, const std::string& expected, const std::string& got) {
    if (status_.ok() && expected != got) status_ = mismatch(execution_, where(name), expected, got);
  }
  void field(const std::string& name, std::uint64_t expected, std::uint64_t got) {
    if (expected != got) field(name, std::to_string(expected), std::to_string(got));
  }

  void cell(const std::string& name, const ModelCell& expected, Cell got, bool with_version) {
    const ModelValue value = value_of(got);
    if (value != expected.value) field(name, describe(expected.value), describe(value));
    if (with_version) field(name + " version", expected.version, version_of(got.tag));
  }

  ModelValue value_of(Cell cell) const {
    switch (type_of(cell.tag)) {
      case ValueType::absent: break;
      case ValueType::integer: return static_cast<std::int64_t>(cell.word);
      case ValueType::bytes: return std::string(execution_.bytes_of(cell));
    }
    return {};
  }

  void effect(std::size_t i) {
    const std::size_t op = run_.first_op + i;
    const bool is_else = run_.failed_in == FailedIn::guards;
    const std::string name = (is_else ? "else[" : "then[") + std::to_string(i) + "]";
    const auto kind = static_cast<OpKind>(execution_.columns.op_kind[op]);
    const ModelEffect& expected = run_.effects[i];
    if (uses_range(kind)) return pairs(name, op, expected);
    const std::uint8_t flags = results_.op_flags[op];
    field(name + " wrote", expected.wrote ? 1 : 0, (flags & BatchResults::kWrote) != 0 ? 1 : 0);
    const bool is_own = expected.cell.own_write;
    if (kind == OpKind::get) field(name + " own write", is_own ? 1 : 0, (flags & BatchResults::kOwnWrite) != 0 ? 1 : 0);
    // The version of a write is the transaction's own. If a GET reads the transaction's own earlier write, its version
    // has no meaning.
    cell(name + " value", expected.cell, results_.op_cell[op], expected.wrote || !is_own);
  }

  void pairs(const std::string& name, std::size_t op, const ModelEffect& expected) {
    const std::uint32_t range = execution_.columns.op_key[op];
    const std::uint32_t begin = results_.range_begin[range], end = results_.range_end[range];
    if (begin > end || end > results_.pair_cell.size()) {
      return field(name + " pairs", "a part of the pair columns", std::to_string(begin) + " to " + std::to_string(end));
    }
    field(name + " pairs", expected.pairs.size(), end - begin);
    for (std::size_t i = 0; i < expected.pairs.size() && status_.ok(); ++i) {
      const auto& [key, seen] = expected.pairs[i];
      const std::string pair = name + " pair " + std::to_string(i);
      const bool is_own = (results_.pair_flags[begin + i] & BatchResults::kOwnWrite) != 0;
      field(pair + " key", key, std::string(results_.pair_key(begin + i)));
      field(pair + " own write", seen.own_write ? 1 : 0, is_own ? 1 : 0);
      cell(pair + " value", seen, results_.pair_cell[begin + i], !seen.own_write);
    }
  }

  const Execution& execution_;
  const BatchResults& results_;
  const ExpectedTransaction& expected_;
  const ModelRun& run_;
  Status status_;
};

// Whether there are `count` ends, in order, and none beyond `bytes`.
bool ends_fit(const Column<std::uint32_t>& ends, std::size_t count, std::size_t bytes) {
  return ends.size() == count && std::is_sorted(ends.begin(), ends.end()) && (count == 0 || ends.back() <= bytes);
}

}  // namespace

Status mismatch(const Execution& execution, const std::string& where, const std::string& expected,
                const std::string& got) {
  return {StatusCode::internal, "batch " + std::to_string(execution.header.number) + ", " + where + ": expected " +
                                    expected + ", got " + got};
}

std::string describe(const ModelValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* bytes = std::get_if<std::string>(&value)) return describe_bytes(*bytes);
  return "absent";
}

Status compare_shapes(const Execution& execution) {
  const BatchResults& results = execution.results;
  const WriteColumns& writes = execution.writes;
  const std::size_t n = execution.columns.size(), m = execution.columns.op_kind.size();
  const std::size_t r = execution.columns.range_limit.size(), pairs = results.pair_cell.size();
  const auto bytes_writes = static_cast<std::size_t>(
      std::count(writes.type.begin(), writes.type.end(), static_cast<std::uint8_t>(ValueType::bytes)));
  const bool expiries_fit =
      writes.expires_us.size() == writes.expiry_write.size() &&
      std::is_sorted(writes.expiry_write.begin(), writes.expiry_write.end(), std::less_equal<>()) &&
      (writes.expiry_write.empty() || writes.expiry_write.back() < writes.size());
  const bool fits =
      expiries_fit && execution.expires.size() == n && results.outcome.size() == n && results.failed_in.size() == n &&
      results.failed_index.size() == n && results.rank.size() == n && results.wrote.size() == n &&
      results.guard_cell.size() == n && results.op_cell.size() == m && results.op_flags.size() == m &&
      results.range_begin.size() == r && results.range_end.size() == r && results.pair_flags.size() == pairs &&
      ends_fit(results.pair_key_end, pairs, results.pair_key_bytes.size()) && writes.type.size() == writes.size() &&
      writes.word.size() == writes.size() && ends_fit(writes.key_end, writes.size(), writes.key_bytes.size()) &&
      ends_fit(writes.value_end, bytes_writes, writes.value_bytes.size());
  if (fits) return {};
  return mismatch(execution, "result columns", "the lengths that txn/results.hpp says", "other lengths");
}

Status compare_transaction(const Execution& execution, const ExpectedTransaction& expected) {
  return TransactionComparison(execution, expected).compare();
}

Status compare_writes(const Execution& execution, const std::vector<ExpectedWrite>& expected) {
  const WriteColumns& writes = execution.writes;
  std::size_t byte_values = 0, expiries = 0;
  for (std::size_t i = 0; i < std::min(expected.size(), writes.size()); ++i) {
    ModelValue value;
    if (static_cast<ValueType>(writes.type[i]) == ValueType::integer) value = writes.word[i];
    if (static_cast<ValueType>(writes.type[i]) == ValueType::bytes) {
      const std::uint32_t begin = byte_values == 0 ? 0 : writes.value_end[byte_values - 1];
      value = std::string(writes.value_bytes.data() + begin, writes.value_end[byte_values] - begin);
      ++byte_values;
    }
    TimeUs expires_us = 0;
    if (expiries < writes.expiry_write.size() && writes.expiry_write[expiries] == i) {
      expires_us = writes.expires_us[expiries++];
    }
    const auto text = [](std::uint32_t rank, std::string_view key, const ModelValue& written, TimeUs expires) {
      return "rank " + std::to_string(rank) + ", key " + std::string(key) + ", " + describe(written) +
             (expires == 0 ? "" : ", expires " + std::to_string(expires));
    };
    const ExpectedWrite& write = expected[i];
    const bool equal = write.rank == writes.rank[i] && write.key == writes.key(i) && write.value == value &&
                       write.expires_us == expires_us;
    if (equal) continue;
    return mismatch(execution, "write " + std::to_string(i), text(write.rank, write.key, write.value, write.expires_us),
                    text(writes.rank[i], writes.key(i), value, expires_us));
  }
  if (expected.size() == writes.size()) return {};
  return mismatch(execution, "number of writes", std::to_string(expected.size()), std::to_string(writes.size()));
}

}  // namespace kilokv::engine
