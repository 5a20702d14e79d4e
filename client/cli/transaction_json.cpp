// Reads transactions from JSON (transaction_json.hpp). Inside this file a wrong field throws an exception. No exception
// leaves the file.
#include "client/cli/transaction_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/json_fields.hpp"

namespace kilokv::client {
namespace {

using Json = nlohmann::json;

using fields::bytes;
using fields::check_names;
using fields::fail;
using fields::integer;
using fields::member;
using fields::shown;

std::string text(const Json& field, const char* name) {
  if (!field.is_string()) fail(std::string("\"") + name + "\" is not a string: " + shown(field));
  return field.get<std::string>();
}

std::string bound(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? std::string() : bytes(*found, name);
}

OnFalse when_false(const Json& guard) {
  if (!guard.contains("when_false")) return OnFalse::fail;
  const std::string value = text(guard["when_false"], "when_false");
  if (value == "fail") return OnFalse::fail;
  if (value == "wait") return OnFalse::wait;
  fail("\"when_false\" is \"fail\" or \"wait\", not \"" + value + "\"");
}

void append_compare(const Json& guard, Compare compare, Key key, OnFalse on_false, Batch* batch) {
  if (guard.contains("other") && guard.contains("value")) fail("\"value\" and \"other\" exclude each other");
  if (guard.contains("other")) {
    batch->guard_keys(key, compare, batch->key(bytes(guard["other"], "other")), on_false);
  } else {
    batch->guard(key, compare, integer<std::int64_t>(member(guard, "value"), "value"), on_false);
  }
}

// The integer compare of this name, if it is one.
std::optional<Compare> compare_of(const std::string& is) {
  if (is == "eq") return Compare::equal;
  if (is == "ne") return Compare::not_equal;
  if (is == "lt") return Compare::less;
  if (is == "le") return Compare::less_equal;
  if (is == "gt") return Compare::greater;
  if (is == "ge") return Compare::greater_equal;
  return std::nullopt;
}

std::vector<std::string> guard_fields(const std::string& is) {
  if (is == "range_unchanged") return {"is", "when_false", "from", "to", "version"};
  if (is == "version" || is == "unchanged") return {"is", "when_false", "key", "version"};
  if (is == "bytes_eq") return {"is", "when_false", "key", "value"};
  if (compare_of(is)) return {"is", "when_false", "key", "value", "other"};
  if (is == "exists" || is == "absent") return {"is", "when_false", "key"};
  if (is == "time_before" || is == "time_after") return {"is", "when_false", "key", "time_us"};
  fail("unknown guard \"is\": \"" + is +
       "\"; known: exists absent eq ne lt le gt ge version unchanged bytes_eq range_unchanged time_before time_after");
}

void append_time_guard(const Json& guard, bool is_after, OnFalse on_false, Batch* batch) {
  if (guard.contains("key") == guard.contains("time_us")) fail("the guard needs either \"time_us\" or \"key\"");
  if (!is_after && on_false == OnFalse::wait)
    fail("\"time_before\" must not wait, because time alone never makes it true");
  if (guard.contains("key")) {
    const Key key = batch->key(bytes(guard["key"], "key"));
    return is_after ? batch->guard_time_after(key, on_false) : batch->guard_time_before(key);
  }
  const auto time_us = integer<std::int64_t>(guard["time_us"], "time_us");
  is_after ? batch->guard_time_after(time_us, on_false) : batch->guard_time_before(time_us);
}

void append_guard(const Json& guard, Batch* batch) {
  const std::string is = text(member(guard, "is"), "is");
  check_names(guard, guard_fields(is));
  const OnFalse on_false = when_false(guard);
  const auto version = [&] { return integer<std::uint64_t>(member(guard, "version"), "version"); };
  if (is == "range_unchanged") {
    batch->guard_range_unchanged(bound(guard, "from"), bound(guard, "to"), version(), on_false);
    return;
  }
  if (is == "time_before" || is == "time_after") {
    return append_time_guard(guard, is == "time_after", on_false, batch);
  }
  const Key key = batch->key(bytes(member(guard, "key"), "key"));
  if (const std::optional<Compare> compare = compare_of(is)) {
    append_compare(guard, *compare, key, on_false, batch);
  } else if (is == "exists") {
    batch->guard_exists(key, on_false);
  } else if (is == "absent") {
    batch->guard_absent(key, on_false);
  } else if (is == "version") {
    batch->guard_version(key, version(), on_false);
  } else if (is == "unchanged") {
    batch->guard_unchanged(key, version(), on_false);
  } else {
    batch->guard_bytes(key, bytes(member(guard, "value"), "value"), on_false);
  }
}

bool flag(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return false;
  if (!found->is_boolean()) fail(std::string("\"") + name + "\" is not true or false: " + shown(*found));
  return found->get<bool>();
}

// Reads the operations of one list.
class OperationReader {
 public:
  void operator()(const Json& operation, Batch* batch) {
    const std::string op = text(member(operation, "op"), "op");
    check_names(operation, fields(op));
    if (op == "range_get" || op == "delete_range") {
      append_range(operation, op == "range_get", batch);
    } else {
      append(operation, op, batch);
    }
    is_get_.push_back(op == "get");
  }

 private:
  static std::vector<std::string> fields(const std::string& op) {
    if (op == "get" || op == "delete") return {"op", "key"};
    if (op == "put") return {"op", "key", "value", "ttl_us", "expires_at_us"};
    if (op == "add") return {"op", "key", "delta", "ttl_us", "expires_at_us"};
    if (op == "range_get") return {"op", "from", "to", "limit", "reverse"};
    if (op == "delete_range") return {"op", "from", "to", "limit"};
    fail("unknown \"op\": \"" + op + "\"; known: get put delete add range_get delete_range");
  }

  static void append_range(const Json& operation, bool is_get, Batch* batch) {
    const auto limit = integer<std::uint32_t>(member(operation, "limit"), "limit");
    const std::string from = bound(operation, "from");
    const std::string to = bound(operation, "to");
    if (!is_get) {
      batch->delete_range(from, to, limit);
    } else if (flag(operation, "reverse")) {
      batch->range_get_reverse(from, to, limit);
    } else {
      batch->range_get(from, to, limit);
    }
  }

  void append(const Json& operation, const std::string& op, Batch* batch) {
    const Key key = batch->key(bytes(member(operation, "key"), "key"));
    if (op == "get") {
      batch->get(key);
    } else if (op == "delete") {
      batch->del(key);
    } else if (op == "put") {
      batch->put(key, operand(member(operation, "value"), "value"), expiry(operation));
    } else {
      const Operand delta = operand(member(operation, "delta"), "delta");
      if (std::holds_alternative<std::string_view>(delta)) fail("\"delta\" is a byte value, not an integer");
      batch->add(key, delta, expiry(operation));
    }
  }

  static Expiry expiry(const Json& operation) {
    const auto ttl = operation.find("ttl_us"), at = operation.find("expires_at_us");
    if (ttl != operation.end() && at != operation.end()) fail("\"ttl_us\" and \"expires_at_us\" exclude each other");
    if (ttl != operation.end()) return TimeToLive{integer<std::int64_t>(*ttl, "ttl_us")};
    if (at != operation.end()) return ExpiresAt{integer<std::int64_t>(*at, "expires_at_us")};
    return {};
  }

  // Bytes point into held_, and are valid until the next call.
  Operand operand(const Json& field, const char* name) {
    if (field.is_number()) return integer<std::int64_t>(field, name);
    if (!field.is_object() || field.contains("b64")) {
      held_ = bytes(field, name);
      return std::string_view(held_);
    }
    if (field.contains("get")) {
      check_names(field, {"get", "negate"});
      return FromGet{earlier_get(field["get"]), flag(field, "negate")};
    }
    check_names(field, {"commit_version", "batch_time"});
    if (field.size() == 1 && flag(field, "commit_version")) return CommitVersion{};
    if (field.size() == 1 && flag(field, "batch_time")) return BatchTime{};
    fail(std::string("\"") + name + "\" must be an integer, bytes, get, commit_version or batch_time: " + shown(field));
  }

  Op earlier_get(const Json& field) const {
    const auto index = integer<std::uint32_t>(field, "get");
    if (index >= is_get_.size() || !is_get_[index]) {
      fail("\"get\": " + std::to_string(index) + " is not the index of an earlier get of the same list");
    }
    return Op{index};
  }

  std::vector<bool> is_get_;
  std::string held_;
};

template <class Append>
void append_list(const Json& line, const char* name, Batch* batch, Append append) {
  const auto list = line.find(name);
  if (list == line.end()) return;
  if (!list->is_array()) fail(std::string("\"") + name + "\" is not a list");
  for (std::size_t i = 0; i < list->size(); ++i) {
    try {
      if (!(*list)[i].is_object()) fail("not an object");
      append((*list)[i], batch);
    } catch (const std::exception& error) {
      fail(std::string(name) + "[" + std::to_string(i) + "]: " + error.what());
    }
  }
}

void check_line(const Json& line) {
  static const std::vector<std::string> kFields = {"session",         "request",   "index",         "attempts",
                                                   "invoke_us",       "return_us", "precedence",    "wait_timeout_ms",
                                                   "guards",          "then",      "else",          "outcome",
                                                   "error",           "not_run",   "failed_guard",  "failed_operation",
                                                   "version",         "batch",     "rank",          "admitted_batch",
                                                   "batch_time_us",   "reads",     "reads_dropped", "cancelled",
                                                   "expire_runs_else"};
  check_names(line, kFields);
}

TransactionOptions options(const Json& line) {
  TransactionOptions options;
  if (line.contains("precedence")) options.precedence = integer<std::uint8_t>(line["precedence"], "precedence");
  if (line.contains("wait_timeout_ms")) {
    const Json& field = line["wait_timeout_ms"];
    constexpr double kLongestMs = 1e12;
    if (!field.is_number() || field.get<double>() < 0 || field.get<double>() > kLongestMs) {
      fail("\"wait_timeout_ms\" is not a number of milliseconds: " + shown(field));
    }
    options.wait_timeout_us = static_cast<std::uint64_t>(std::llround(field.get<double>() * 1000));
  }
  options.expire_runs_else = flag(line, "expire_runs_else");
  return options;
}

bool append_line(const Json& line, Batch* batch) {
  if (!line.is_object()) fail("not a JSON object");
  if (line.contains("format")) return false;
  check_line(line);
  batch->begin(options(line));
  append_list(line, "guards", batch, append_guard);
  append_list(line, "then", batch, OperationReader());
  if (line.contains("else")) batch->otherwise();
  append_list(line, "else", batch, OperationReader());
  batch->end();
  return true;
}

}  // namespace

Expected<bool> append_transaction(std::string_view text, Batch* batch, TextPosition begin) {
  Error wrong;
  wrong.code = ErrorCode::invalid_argument;
  try {
    return append_line(fields::parse(text), batch);
  } catch (const Json::parse_error& error) {
    wrong.message = json_problem(text, error.byte == 0 ? 0 : error.byte - 1, begin);
  } catch (const Json::out_of_range&) {  // parse() throws no other exception here
    wrong.message = to_string(begin) + ": a number of this transaction is too large";
  } catch (const std::exception& error) {
    wrong.message = to_string(begin) + ": " + error.what();
  }
  return wrong;
}

}  // namespace kilokv::client
