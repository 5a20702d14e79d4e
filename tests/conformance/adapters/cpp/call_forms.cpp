// Role: see call_forms.hpp.
#include "tests/conformance/adapters/cpp/call_forms.hpp"

#include <absl/strings/escaping.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "client/cli/transaction_json.hpp"

namespace kilokv::conformance {
namespace {

template <class T>
T parsed(const Json& form) {
  const auto& digits = form.get_ref<const std::string&>();
  T value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) throw Misuse(digits + " is out of range");
  return value;
}

// In a history, integers are JSON numbers. In a script they are strings of digits.
void replace_digits(Json* form) {
  for (const char* field : {"value", "delta", "version", "time_us", "ttl_us", "expires_at_us"}) {
    const auto found = form->find(field);
    if (found != form->end() && found->is_string()) *found = Json::parse(found->get<std::string>());
  }
}

}  // namespace

std::string to_bytes(const Json& form) {
  if (form.is_string()) return form.get<std::string>();
  std::string bytes;
  if (!absl::Base64Unescape(form.at("b64").get<std::string>(), &bytes)) throw Misuse("no base64: " + form.dump());
  return bytes;
}

std::int64_t to_integer(const Json& form) { return parsed<std::int64_t>(form); }
std::uint64_t to_version(const Json& form) { return parsed<std::uint64_t>(form); }

client::Value to_value(const Json& form) {
  if (form.is_null()) return std::monostate{};
  if (form.is_string()) return to_integer(form);
  return to_bytes(form);
}

client::Expiry to_expiry(const Json& call) {
  if (call.contains("ttl_us")) return client::TimeToLive{to_integer(call["ttl_us"])};
  if (call.contains("expires_at_us")) return client::ExpiresAt{to_integer(call["expires_at_us"])};
  return {};
}

client::WatchPosition to_position(const Json& form) {
  return {to_version(form.at("version")), form.at("writes").get<std::uint32_t>()};
}

std::pair<std::string, std::string> to_range(const Json& call) {
  const auto bound = [&call](const char* field) {
    return call.contains(field) ? to_bytes(call[field]) : std::string();
  };
  return {bound("from"), bound("to")};
}

client::CallOptions to_call_options(const Json& call) {
  client::CallOptions options;
  if (call.contains("timeout_ms")) options.timeout_us = to_us(call, "timeout_ms", 0);
  if (call.value("encoding", "columns") == "rows") options.encoding = client::Encoding::rows;
  options.detached = call.value("detached", false);
  return options;
}

// The reader of `kilokv txn` knows the form.
client::Batch to_batch(const Json& forms) {
  client::Batch batch;
  for (Json form : forms) {
    for (const char* list : {"guards", "then", "else"}) {
      if (!form.contains(list)) continue;
      for (Json& element : form[list]) replace_digits(&element);
    }
    const auto appended = client::append_transaction(form.dump(), &batch);
    if (!appended) throw Misuse(appended.error().message);
  }
  return batch;
}

std::uint64_t to_us(const Json& call, const char* field, std::uint64_t otherwise) {
  return call.contains(field) ? call[field].get<std::uint64_t>() * 1000 : otherwise;
}

}  // namespace kilokv::conformance
