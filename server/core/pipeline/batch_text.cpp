#include "server/core/pipeline/batch_text.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "engine/txn/kinds.hpp"

namespace kilokv::server {
namespace {

using engine::GuardKind;
using engine::GuardOperand;
using engine::Operand;
using engine::OpKind;

// The names of the kinds of operations, and those of their operands.
struct OpNames {
  std::string_view op, operand;
};

// Indexed by the numbers of GuardKind and OpKind.
constexpr std::string_view kGuardNames[] = {
    "",          "exists",   "absent",          "eq",          "ne",        "lt", "le", "gt", "ge", "version",
    "unchanged", "bytes_eq", "range_unchanged", "time_before", "time_after"};
constexpr OpNames kOpNames[] = {{"", ""},         {"get", ""},       {"put", "value"},     {"delete", ""},
                                {"add", "delta"}, {"range_get", ""}, {"delete_range", ""}, {"range_get", ""}};
static_assert(std::size(kGuardNames) == engine::kGuardKindMax + 1 && std::size(kOpNames) == engine::kOpKindMax + 1);

// Whether the operand has a name where the kind has an operand, and only there.
constexpr bool operands_are_named() {
  for (std::size_t kind = 0; kind < std::size(kOpNames); ++kind) {
    if (takes_operand(static_cast<OpKind>(kind)) == kOpNames[kind].operand.empty()) return false;
  }
  return true;
}
static_assert(operands_are_named());

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t taken = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < taken ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) text += k <= taken ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string bytes_text(std::string_view bytes) { return R"({"b64": ")" + base64(bytes) + "\"}"; }

std::string key_text(std::string_view key) {
  const bool plain = std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!plain) return bytes_text(key);
  std::string text = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// The members of one transaction's JSON object.
class TransactionText {
 public:
  explicit TransactionText(const engine::TransactionColumns& columns) : columns_(columns) {}

  std::string line(std::size_t t, bool expires) const {
    const auto wait_us = expires ? 0 : static_cast<std::uint64_t>(columns_.wait_timeout_us[t]);
    std::string rest_ms = std::to_string(1000 + wait_us % 1000);
    rest_ms[0] = '.';
    return "{\"precedence\": " + std::to_string(columns_.precedence[t]) +
           ", \"wait_timeout_ms\": " + std::to_string(wait_us / 1000) + rest_ms +
           (columns_.expire_runs_else[t] != 0 ? ", \"expire_runs_else\": true" : "") +
           list("guards", columns_.guard_begin(t), columns_.guard_end[t], &TransactionText::guard) +
           list("then", columns_.then_begin(t), columns_.then_end[t], &TransactionText::operation) +
           list("else", columns_.then_end[t], columns_.else_end[t], &TransactionText::operation) + "}\n";
  }

 private:
  std::string list(const char* name, std::uint32_t begin, std::uint32_t end,
                   std::string (TransactionText::*element)(std::uint32_t) const) const {
    std::string text = std::string(", \"") + name + "\": [";
    for (std::uint32_t i = begin; i < end; ++i) text += (i == begin ? "" : ", ") + (this->*element)(i);
    return text + ']';
  }

  std::string key(std::uint32_t i) const { return ", \"key\": " + key_text(columns_.key(i)); }
  std::string range(std::uint32_t i) const {
    return ", \"from\": " + key_text(columns_.range_from(i)) + ", \"to\": " + key_text(columns_.range_to(i));
  }
  std::string value(std::int64_t i) const { return bytes_text(columns_.value(static_cast<std::size_t>(i))); }

  std::string guard(std::uint32_t i) const {
    const auto kind = static_cast<GuardKind>(columns_.guard_kind[i]);
    const std::int64_t operand = columns_.guard_operand[i];
    std::string text = "{\"is\": \"" + std::string(kGuardNames[columns_.guard_kind[i]]) + '"';
    if (columns_.guard_key[i] != engine::kNone) {
      text += uses_range(kind) ? range(columns_.guard_key[i]) : key(columns_.guard_key[i]);
    }
    switch (operand_of(kind)) {
      case GuardOperand::nothing: break;
      case GuardOperand::integer_or_key:
        if (columns_.guard_other[i] != engine::kNone) {
          text += ", \"other\": " + key_text(columns_.key(columns_.guard_other[i]));
        } else {
          text += ", \"value\": " + std::to_string(operand);
        }
        break;
      case GuardOperand::version: text += ", \"version\": " + std::to_string(operand); break;
      case GuardOperand::bytes: text += ", \"value\": " + value(operand); break;
      case GuardOperand::time_or_key:
        if (columns_.guard_key[i] == engine::kNone) text += ", \"time_us\": " + std::to_string(operand);
        break;
    }
    const bool waits = static_cast<engine::OnFalse>(columns_.guard_on_false[i]) == engine::OnFalse::wait;
    return text + (waits ? ", \"when_false\": \"wait\"}" : ", \"when_false\": \"fail\"}");
  }

  std::string operand(std::uint32_t i) const {
    const std::int64_t word = columns_.op_value[i];
    switch (static_cast<Operand>(columns_.op_operand[i])) {
      case Operand::integer: break;
      case Operand::bytes: return value(word);
      case Operand::get: return "{\"get\": " + std::to_string(word) + '}';
      case Operand::get_negated: return "{\"get\": " + std::to_string(word) + ", \"negate\": true}";
      case Operand::commit_version: return "{\"commit_version\": true}";
      case Operand::batch_time: return "{\"batch_time\": true}";
    }
    return std::to_string(word);
  }

  std::string expiry(std::uint32_t op) const {
    const auto found = std::lower_bound(columns_.expiry_op.begin(), columns_.expiry_op.end(), op);
    if (found == columns_.expiry_op.end() || *found != op) return "";
    const auto i = static_cast<std::size_t>(found - columns_.expiry_op.begin());
    const bool is_ttl = static_cast<engine::Expiry>(columns_.expiry_kind[i]) == engine::Expiry::after;
    return (is_ttl ? ", \"ttl_us\": " : ", \"expires_at_us\": ") + std::to_string(columns_.expiry_us[i]);
  }

  std::string operation(std::uint32_t i) const {
    const auto kind = static_cast<OpKind>(columns_.op_kind[i]);
    const std::uint32_t index = columns_.op_key[i];
    const OpNames& names = kOpNames[columns_.op_kind[i]];
    const std::string text = "{\"op\": \"" + std::string(names.op) + '"';
    if (uses_range(kind)) {
      return text + range(index) + ", \"limit\": " + std::to_string(columns_.range_limit[index]) +
             (is_reverse(kind) ? ", \"reverse\": true}" : "}");
    }
    if (takes_operand(kind)) {
      return text + key(index) + ", \"" + std::string(names.operand) + "\": " + operand(i) + expiry(i) + '}';
    }
    return text + key(index) + '}';
  }

  const engine::TransactionColumns& columns_;
};

}  // namespace

std::string value_text(const engine::ModelValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* bytes = std::get_if<std::string>(&value)) return bytes_text(*bytes);
  return "null";
}

std::string batch_text(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                       std::span<const std::uint8_t> expires, const engine::ModelState& before) {
  std::string head = "{\"batch\": " + std::to_string(header.number) +
                     ", \"batch_time_us\": " + std::to_string(header.time_us) +
                     ", \"first_version\": " + std::to_string(header.first_version) +
                     ", \"tombstone_floor\": " + std::to_string(before.tombstone_floor) +
                     ", \"records\": " + std::to_string(before.records.size()) +
                     ", \"transactions\": " + std::to_string(columns.size()) + "}\n";
  std::string text;
  const auto append = [&text](const std::string& line, std::size_t bytes_max) {
    const bool fits = text.size() + line.size() <= bytes_max;
    if (fits) text += line;
    return fits;
  };
  std::size_t records = 0, transactions = 0;
  for (const auto& [key, record] : before.records) {
    if (!append("{\"key\": " + key_text(key) + ", \"value\": " + value_text(record.value) +
                    ", \"version\": " + std::to_string(record.version) +
                    (record.expires_us == 0 ? "" : ", \"expires_at_us\": " + std::to_string(record.expires_us)) + "}\n",
                kBatchTextBytesMax / 2)) {
      break;
    }
    ++records;
  }
  const TransactionText lines(columns);
  while (transactions < columns.size() &&
         append(lines.line(transactions, expires[transactions] != 0), kBatchTextBytesMax)) {
    ++transactions;
  }
  if (records == before.records.size() && transactions == columns.size()) return head + text;
  return head + text + "{\"records_left_out\": " + std::to_string(before.records.size() - records) +
         ", \"transactions_left_out\": " + std::to_string(columns.size() - transactions) + "}\n";
}

}  // namespace kilokv::server
