// Role: see answer_forms.hpp.
#include "tests/conformance/adapters/cpp/answer_forms.hpp"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

namespace kilokv::conformance {
namespace {

Json from_bytes(std::string_view bytes) { return {{"b64", absl::Base64Escape({bytes.data(), bytes.size()})}}; }

// An integer, bytes, or nothing: of a view or of a copy.
template <class... Kinds>
Json from_variant(const std::variant<Kinds...>& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if constexpr ((std::is_same_v<Kinds, std::string> || ...)) {
    if (const auto* bytes = std::get_if<std::string>(&value)) return from_bytes(*bytes);
  } else {
    if (const auto* bytes = std::get_if<std::string_view>(&value)) return from_bytes(*bytes);
  }
  return nullptr;
}

Json from_version(std::optional<std::uint64_t> version) { return version ? Json(std::to_string(*version)) : Json(); }
Json from_expiry(std::int64_t time_us) { return time_us != 0 ? Json(std::to_string(time_us)) : Json(); }

Json from_read(const client::ReadView& read) {
  return {{"operation", read.operation},
          {"key", from_key(read.key)},
          {"value", from_variant(read.value)},
          {"version", from_version(read.version)}};
}

Json from_failed_in(client::FailedIn list) {
  switch (list) {
    case client::FailedIn::none: return nullptr;
    case client::FailedIn::guards: return "guards";
    case client::FailedIn::then_operations: return "then";
    case client::FailedIn::else_operations: return "else";
  }
  return nullptr;
}

Json from_result(const client::Results& results, std::size_t index) {
  if (results.outcome(index) == client::Outcome::unknown) return nullptr;
  const client::ResultView result = results.at(index);
  const bool failed = result.failed_in != client::FailedIn::none;
  return {{"outcome", client::to_string(result.outcome)},
          {"failed_in", from_failed_in(result.failed_in)},
          {"failed_index", failed ? Json(result.failed_index) : Json()},
          {"guard_value", result.guard_value ? from_read(*result.guard_value) : Json()},
          {"reads", from_reads(results, index)},
          {"version", from_version(result.version)},
          {"batch", result.batch},
          {"rank", result.rank},
          {"admitted_batch", result.admitted_batch},
          {"batch_time_us", std::to_string(result.batch_time_us)},
          {"reads_dropped", result.reads_dropped}};
}

}  // namespace

Json from_key(std::string_view key) {
  const bool is_ascii = std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_ascii ? Json(std::string(key)) : from_bytes(key);
}

Json from_value(const client::Value& value) { return from_variant(value); }

Json from_reads(const client::Results& results, std::size_t index) {
  Json reads = Json::array();
  for (std::size_t i = 0; i < results.read_count(index); ++i) reads.push_back(from_read(results.read(index, i)));
  return reads;
}

Json from_results(const client::Results& results) {
  Json list = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) list.push_back(from_result(results, i));
  return list;
}

Json from_request(const client::RequestResult& result) {
  return {{"results", from_results(result.results)}, {"request", result.request}, {"attempts", result.attempts}};
}

Json from_known(const std::vector<client::KnownRequest>& requests) {
  Json list = Json::array();
  for (const client::KnownRequest& known : requests) {
    list.push_back({{"number", known.number},
                    {"state", client::to_string(known.state)},
                    {"transactions", known.transactions},
                    {"decided", known.decided},
                    {"parked", known.parked},
                    {"queued", known.queued},
                    {"results", from_results(known.results)}});
  }
  return list;
}

Json from_pairs(const std::vector<client::Pair>& pairs) {
  Json list = Json::array();
  for (const client::Pair& pair : pairs) {
    list.push_back({{"key", from_key(pair.key)},
                    {"value", from_variant(pair.value)},
                    {"version", std::to_string(pair.version)},
                    {"expires_at_us", from_expiry(pair.expires_at_us)}});
  }
  return list;
}

Json from_write(const client::WatchedWrite& write) {
  return {{"key", from_key(write.key)},
          {"value", from_variant(write.value)},
          {"version", std::to_string(write.version)},
          {"batch_time_us", std::to_string(write.batch_time_us)},
          {"expires_at_us", from_expiry(write.expires_at_us)},
          {"expired", write.expired},
          {"batch", write.batch},
          {"rank", write.rank}};
}

Json from_parked(const client::ParkedTransaction& parked) {
  return {{"parked_id", parked.id}, {"request", parked.request}, {"index", parked.index},
          {"guard", parked.guard},  {"client", parked.client},   {"guard_key", from_key(parked.guard_key)}};
}

Json from_error(const client::Error& error) {
  return {{"code", client::to_string(error.code)},
          {"reason", error.reason},
          {"message", error.message},
          {"field", error.field},
          {"limit", error.limit},
          {"actual", error.actual},
          {"setting", error.setting},
          {"not_run", error.not_run},
          {"may_have_run", error.may_have_run},
          {"never_ran", client::never_ran(error)},
          {"request", error.request},
          {"attempts", error.attempts}};
}

}  // namespace kilokv::conformance
