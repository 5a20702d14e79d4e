// Reading transactions from JSON (transaction_json.hpp). Inside, a wrong field is an exception; none leaves the file.
#include "client/cli/transaction_json.hpp"

#include <absl/strings/escaping.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

namespace kilokv::client {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument(what); }

const Json& member(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) fail(std::string("\"") + name + "\" is missing");
  return *found;
}

template <class T>
T integer(const Json& field, const char* name) {
  if (field.is_number_unsigned()) {
    const auto value = field.get<std::uint64_t>();
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(value);
  } else if (field.is_number_integer()) {
    const auto value = field.get<std::int64_t>();
    if (std::numeric_limits<T>::is_signed && value >= static_cast<std::int64_t>(std::numeric_limits<T>::min())) {
      return static_cast<T>(value);
    }
  }
  fail(std::string("\"") + name + "\" is not an integer in range: " + field.dump());
}

std::string bytes(const Json& field, const char* name) {
  if (field.is_string()) return field.get<std::string>();
  std::string decoded;
  if (field.is_object() && field.contains("b64") && field["b64"].is_string() &&
      absl::Base64Unescape(field["b64"].get<std::string>(), &decoded)) {
    return decoded;
  }
  fail(std::string("\"") + name + "\" is neither a string nor {\"b64\": ...}: " + field.dump());
}

std::string bound(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? std::string() : bytes(*found, name);
}

OnFalse when_false(const Json& guard) {
  const std::string value = guard.value("when_false", "fail");
  if (value == "fail") return OnFalse::fail;
  if (value == "wait") return OnFalse::wait;
  fail("\"when_false\" is \"fail\" or \"wait\", not \"" + value + "\"");
}

void append_compare(const Json& guard, Compare compare, Key key, OnFalse on_false, Batch* batch) {
  if (guard.contains("other")) {
    batch->guard_keys(key, compare, batch->key(bytes(guard["other"], "other")), on_false);
  } else {
    batch->guard(key, compare, integer<std::int64_t>(member(guard, "value"), "value"), on_false);
  }
}

void append_guard(const Json& guard, Batch* batch) {
  constexpr std::array<const char*, 6> kCompares = {"eq", "ne", "lt", "le", "gt", "ge"};
  const std::string is = member(guard, "is").get<std::string>();
  const OnFalse on_false = when_false(guard);
  const auto version = [&] { return integer<std::uint64_t>(member(guard, "version"), "version"); };
  if (is == "range_unchanged") {
    batch->guard_range_unchanged(bound(guard, "from"), bound(guard, "to"), version(), on_false);
    return;
  }
  const Key key = batch->key(bytes(member(guard, "key"), "key"));
  for (std::size_t i = 0; i < kCompares.size(); ++i) {
    if (is != kCompares[i]) continue;
    append_compare(guard, static_cast<Compare>(static_cast<std::size_t>(Compare::equal) + i), key, on_false, batch);
    return;
  }
  if (is == "exists") {
    batch->guard_exists(key, on_false);
  } else if (is == "absent") {
    batch->guard_absent(key, on_false);
  } else if (is == "version") {
    batch->guard_version(key, version(), on_false);
  } else if (is == "unchanged") {
    batch->guard_unchanged(key, version(), on_false);
  } else if (is == "bytes_eq") {
    batch->guard_bytes(key, bytes(member(guard, "value"), "value"), on_false);
  } else {
    fail("unknown guard \"is\": \"" + is + "\"");
  }
}

// `held` keeps the bytes that the operand points to.
Operand operand(const Json& field, const char* name, std::string* held) {
  if (field.is_number()) return integer<std::int64_t>(field, name);
  if (field.is_object() && field.contains("get")) {
    return FromGet{Op{integer<std::uint32_t>(field["get"], "get")}, field.value("negate", false)};
  }
  if (field.is_object() && field.value("commit_version", false)) return CommitVersion{};
  if (field.is_object() && field.value("batch_time", false)) return BatchTime{};
  *held = bytes(field, name);
  return std::string_view(*held);
}

void append_operation(const Json& operation, Batch* batch) {
  const std::string op = member(operation, "op").get<std::string>();
  std::string held;
  if (op == "range_get" || op == "delete_range") {
    const auto limit = integer<std::uint32_t>(member(operation, "limit"), "limit");
    const std::string from = bound(operation, "from");
    const std::string to = bound(operation, "to");
    op == "range_get" ? batch->range_get(from, to, limit) : batch->delete_range(from, to, limit);
    return;
  }
  const Key key = batch->key(bytes(member(operation, "key"), "key"));
  if (op == "get") {
    batch->get(key);
  } else if (op == "put") {
    batch->put(key, operand(member(operation, "value"), "value", &held));
  } else if (op == "delete") {
    batch->del(key);
  } else if (op == "add") {
    batch->add(key, operand(member(operation, "delta"), "delta", &held));
  } else {
    fail("unknown \"op\": \"" + op + "\"");
  }
}

template <class Append>
void append_list(const Json& line, const char* name, Batch* batch, const Append& append) {
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

void check_fields(const Json& line) {
  static const std::vector<std::string> kFields = {
      "session",          "request", "index", "attempts", "invoke_us",      "return_us",     "precedence",
      "wait_timeout_ms",  "guards",  "then",  "else",     "outcome",        "error",         "failed_guard",
      "failed_operation", "version", "batch", "rank",     "admitted_batch", "batch_time_us", "reads",
      "reads_dropped"};
  for (const auto& item : line.items()) {
    if (std::find(kFields.begin(), kFields.end(), item.key()) == kFields.end()) {
      fail("unknown field \"" + item.key() + "\"");
    }
  }
}

TransactionOptions options(const Json& line) {
  TransactionOptions options;
  if (line.contains("precedence")) options.precedence = integer<std::uint8_t>(line["precedence"], "precedence");
  if (line.contains("wait_timeout_ms")) {
    const Json& field = line["wait_timeout_ms"];
    constexpr double kLongestMs = 1e12;
    if (!field.is_number() || field.get<double>() < 0 || field.get<double>() > kLongestMs) {
      fail("\"wait_timeout_ms\" is not a number of milliseconds: " + field.dump());
    }
    options.wait_timeout_us = static_cast<std::uint64_t>(std::llround(field.get<double>() * 1000));
  }
  return options;
}

bool append_line(std::string_view text, Batch* batch) {
  const Json line = Json::parse(text);
  if (!line.is_object()) fail("not a JSON object");
  if (line.contains("format")) return false;
  check_fields(line);
  batch->begin(options(line));
  append_list(line, "guards", batch, append_guard);
  append_list(line, "then", batch, append_operation);
  if (line.contains("else")) batch->otherwise();
  append_list(line, "else", batch, append_operation);
  batch->end();
  return true;
}

}  // namespace

Expected<bool> append_transaction(std::string_view line, Batch* batch) {
  try {
    return append_line(line, batch);
  } catch (const std::exception& error) {
    Error wrong;
    wrong.code = ErrorCode::invalid_argument;
    wrong.message = error.what();
    return wrong;
  }
}

}  // namespace kilokv::client
