// Formats history lines directly into the caller's buffer (history.hpp).
#include "kilokv/history.hpp"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <charconv>

#include "client/lib/src/batch_columns.hpp"
#include "client/lib/src/kinds.hpp"
#include "kilokv/v1/transaction.pb.h"

namespace kilokv::client {
namespace {

template <class T>
void append_number(T value, std::string* out) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out->append(digits, end);
}

template <class T>
void append_field(std::string_view name, T value, std::string* out) {
  out->append(", \"").append(name).append("\": ");
  append_number(value, out);
}

void append_key_field(std::string_view name, std::string_view key, std::string* out) {
  out->append(", \"").append(name).append("\": ");
  append_history_key(key, out);
}

void append_value(const ValueView& value, std::string* out) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    append_number(*integer, out);
  } else if (const auto* bytes = std::get_if<std::string_view>(&value)) {
    append_history_bytes(*bytes, out);
  } else {
    out->append("null");
  }
}

void append_range(const Batch::Columns& c, std::uint32_t range, std::string* out) {
  append_key_field("from", c.range_from(range), out);
  append_key_field("to", c.range_to(range), out);
}

void append_guard(const Batch::Columns& c, int g, std::string* out) {
  const v1::TransactionColumns& m = c.message;
  const auto at = static_cast<std::size_t>(g);
  const GuardTraits& traits = guard_traits(m.guard_kind()[at]);
  const std::int64_t operand = m.guard_operand(g);
  out->append("{\"is\": \"").append(traits.name).append("\"");
  if (traits.uses_range) {
    append_range(c, m.guard_key(g), out);
  } else if (m.guard_key(g) != kNoKey) {
    append_key_field("key", c.key(m.guard_key(g)), out);
  }
  const std::uint32_t other = m.guard_other_key_size() == 0 ? kNoKey : m.guard_other_key(g);
  switch (traits.operand) {
    case GuardOperand::nothing: break;
    case GuardOperand::integer_or_key:
      if (other != kNoKey) {
        append_key_field("other", c.key(other), out);
      } else {
        append_field("value", operand, out);
      }
      break;
    case GuardOperand::version: append_field("version", static_cast<std::uint64_t>(operand), out); break;
    case GuardOperand::bytes:
      out->append(", \"value\": ");
      append_history_bytes(c.value(operand), out);
      break;
    case GuardOperand::time_or_key:
      if (m.guard_key(g) == kNoKey) append_field("time_us", operand, out);
      break;
  }
  const bool wait = !m.guard_on_false().empty() && m.guard_on_false()[at] == v1::ON_FALSE_WAIT;
  out->append(wait ? ", \"when_false\": \"wait\"}" : ", \"when_false\": \"fail\"}");
}

void append_operand(const Batch::Columns& c, int o, std::string* out) {
  const std::string& kinds = c.message.operation_operand();
  const std::int64_t value = c.message.operation_value(o);
  switch (kinds.empty() ? v1::OPERAND_KIND_INTEGER : static_cast<v1::OperandKind>(kinds[static_cast<std::size_t>(o)])) {
    case v1::OPERAND_KIND_BYTES: append_history_bytes(c.value(value), out); return;
    case v1::OPERAND_KIND_COMMIT_VERSION: out->append("{\"commit_version\": true}"); return;
    case v1::OPERAND_KIND_BATCH_TIME: out->append("{\"batch_time\": true}"); return;
    case v1::OPERAND_KIND_GET:
    case v1::OPERAND_KIND_GET_NEGATED:
      out->append("{\"get\": ");
      append_number(value, out);
      out->append(kinds[static_cast<std::size_t>(o)] == v1::OPERAND_KIND_GET ? "}" : ", \"negate\": true}");
      return;
    default: append_number(value, out);
  }
}

void append_operation(const Batch::Columns& c, int o, std::string* out) {
  const OperationTraits& traits = operation_traits(c.message.operation_kind()[static_cast<std::size_t>(o)]);
  const std::uint32_t key = c.message.operation_key(o);
  out->append("{\"op\": \"").append(traits.name).append("\"");
  if (traits.uses_range) {
    append_range(c, key, out);
    append_field("limit", c.message.range_limit(static_cast<int>(key)), out);
    if (traits.reverse) out->append(", \"reverse\": true");
  } else {
    append_key_field("key", c.key(key), out);
  }
  if (!traits.operand.empty()) {
    out->append(", \"").append(traits.operand).append("\": ");
    append_operand(c, o, out);
  }
  if (const int expiry = c.expiry_of(o); expiry >= 0) {
    const bool is_ttl = c.message.expiry_kind()[static_cast<std::size_t>(expiry)] == v1::EXPIRY_KIND_TTL;
    append_field(is_ttl ? "ttl_us" : "expires_at_us", c.message.expiry_us(expiry), out);
  }
  out->push_back('}');
}

// Appends a list of the elements [begin, end). `append(i)` appends one of them.
template <class Append>
void append_list(std::string_view name, std::uint32_t begin, std::uint32_t end, std::string* out,
                 const Append& append) {
  out->append(", \"").append(name).append("\": [");
  for (std::uint32_t i = begin; i < end; ++i) {
    if (i != begin) out->append(", ");
    append(static_cast<int>(i));
  }
  out->push_back(']');
}

void append_transaction(const Batch::Columns& c, int t, std::string* out) {
  append_field("precedence", std::uint32_t{c.transaction_precedence(t)}, out);
  const std::uint64_t wait_us = c.transaction_wait_timeout_us(t);
  if (wait_us % 1000 == 0) {
    append_field("wait_timeout_ms", wait_us / 1000, out);
  } else {
    append_field("wait_timeout_ms", static_cast<double>(wait_us) / 1000, out);
  }
  if (c.transaction_expire_runs_else(t)) out->append(", \"expire_runs_else\": true");
  const auto then_end = c.message.then_ends(t);
  append_list("guards", c.guard_begin(t), c.message.guard_ends(t), out, [&](int g) { append_guard(c, g, out); });
  append_list("then", c.then_begin(t), then_end, out, [&](int o) { append_operation(c, o, out); });
  append_list("else", then_end, c.else_end(t), out, [&](int o) { append_operation(c, o, out); });
}

void append_sender(const HistoryContext& context, std::size_t index, std::string* out) {
  if (context.session.empty()) {
    out->append("{\"session\": null");
  } else {
    out->append("{\"session\": \"").append(context.session).append("\"");
  }
  append_field("request", context.request, out);
  append_field("index", index, out);
  append_field("attempts", context.attempts, out);
  append_field("invoke_us", context.invoke_us - context.began_us, out);
  if (context.return_us) {
    append_field("return_us", *context.return_us - context.began_us, out);
  } else {
    out->append(", \"return_us\": null");
  }
}

void append_version(std::optional<std::uint64_t> version, std::string* out) {
  out->append(", \"version\": ");
  if (version) {
    append_number(*version, out);
  } else {
    out->append("null");
  }
}

void append_read(std::string_view key, const ValueView& value, std::optional<std::uint64_t> version, std::string* out,
                 std::int64_t expires_at_us = 0) {
  out->append("{\"key\": ");
  append_history_key(key, out);
  out->append(", \"value\": ");
  append_value(value, out);
  append_version(version, out);
  if (expires_at_us != 0) append_field("expires_at_us", expires_at_us, out);
  out->push_back('}');
}

ValueView view(const Pair& pair) {
  if (const auto* integer = std::get_if<std::int64_t>(&pair.value)) return *integer;
  return std::string_view(std::get<std::string>(pair.value));
}

void append_result(const Results& results, std::size_t index, std::string* out) {
  const ResultView result = results.at(index);
  out->append(", \"outcome\": \"").append(to_string(result.outcome)).append("\"");
  if (result.failed_in == FailedIn::guards) {
    append_field("failed_guard", result.failed_index, out);
  } else if (result.failed_in != FailedIn::none) {
    append_field("failed_operation", result.failed_index, out);
  }
  append_version(result.version, out);
  append_field("batch", result.batch, out);
  append_field("rank", result.rank, out);
  append_field("admitted_batch", result.admitted_batch, out);
  append_field("batch_time_us", result.batch_time_us, out);
  if (result.reads_dropped) out->append(", \"reads_dropped\": true");
  const auto count = static_cast<std::uint32_t>(results.read_count(index));
  append_list("reads", 0, count, out, [&](int i) {
    const ReadView read = results.read(index, static_cast<std::size_t>(i));
    append_read(read.key, read.value, read.version, out);
  });
}

}  // namespace

void HistoryContext::ended_with(const Error& failure) {
  error = failure.code;
  not_run = failure.not_run;
  may_have_run = failure.may_have_run;
  if (failure.request == 0) return;
  request = failure.request;
  attempts = failure.attempts;
}

void append_history_bytes(std::string_view bytes, std::string* out) {
  out->append("{\"b64\": \"");
  out->append(absl::Base64Escape(absl::string_view(bytes.data(), bytes.size())));
  out->append("\"}");
}

void append_history_key(std::string_view key, std::string* out) {
  if (!std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    append_history_bytes(key, out);
    return;
  }
  out->push_back('"');
  for (const char c : key) {
    if (c == '"' || c == '\\') out->push_back('\\');
    out->push_back(c);
  }
  out->push_back('"');
}

std::string history_header(std::string_view config_json, const std::vector<Pair>& initial) {
  std::string out = "{\"format\": \"kilokv-history-2\", \"config\": ";
  out.append(config_json);
  append_list("initial", 0, static_cast<std::uint32_t>(initial.size()), &out, [&](int i) {
    const Pair& pair = initial[static_cast<std::size_t>(i)];
    append_read(pair.key, view(pair), pair.version, &out, pair.expires_at_us);
  });
  out.append("}\n");
  return out;
}

void append_history(const Batch& batch, const Results& results, std::size_t index, const HistoryContext& context,
                    std::string* out) {
  append_sender(context, index, out);
  append_transaction(batch.columns(), static_cast<int>(index), out);
  if (index >= results.size() || results.outcome(index) == Outcome::unknown) {
    out->append(", \"outcome\": null, \"error\": \"").append(to_string(context.error)).append("\"");
    if (context.not_run) out->append(", \"not_run\": true");
    if (context.may_have_run) out->append(", \"not_run\": false");
  } else if (results.outcome(index) == Outcome::cancelled) {
    out->append(", \"outcome\": null, \"error\": \"CANCELLED\", \"cancelled\": true");
  } else {
    append_result(results, index, out);
  }
  out->append("}\n");
}

void append_history(const Batch& batch, const RequestResult& result, HistoryContext context, std::string* out) {
  context.request = result.request;
  context.attempts = result.attempts;
  context.invoke_us = result.invoke_us;
  context.return_us = result.return_us;
  for (std::size_t i = 0; i < result.results.size(); ++i) append_history(batch, result.results, i, context, out);
}

void append_history_scan(std::string_view from, std::string_view to, std::uint64_t limit, const ScanPosition& position,
                         const std::vector<Pair>& pairs, const HistoryContext& context, std::string* out) {
  append_sender(context, 0, out);
  out->append(", \"scan\": {\"from\": ");
  append_history_key(from, out);
  append_key_field("to", to, out);
  append_field("limit", limit, out);
  out->append("}, \"outcome\": \"COMMITTED\", \"version\": null");
  append_field("batch", position.boundary, out);
  out->append(", \"rank\": null");
  append_field("admitted_batch", position.boundary, out);
  append_field("batch_time_us", position.batch_time_us, out);
  append_list("reads", 0, static_cast<std::uint32_t>(pairs.size()), out, [&](int i) {
    const Pair& pair = pairs[static_cast<std::size_t>(i)];
    append_read(pair.key, view(pair), pair.version, out);
  });
  out->append("}\n");
}

}  // namespace kilokv::client
