// Role: see adapter.hpp. This file has reads, the calls about the server, and interactive transactions.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "kilokv/activity.hpp"
#include "kilokv/watch.hpp"
#include "tests/conformance/adapters/cpp/adapter.hpp"
#include "tests/conformance/adapters/cpp/answer_forms.hpp"
#include "tests/conformance/adapters/cpp/call_forms.hpp"
#include "tests/conformance/adapters/cpp/failure.hpp"

namespace kilokv::conformance {
namespace {

std::vector<std::string> to_keys(const Json& forms) {
  std::vector<std::string> keys;
  for (const Json& form : forms) keys.push_back(to_bytes(form));
  return keys;
}

}  // namespace

Json Adapter::get(const Json& call) {
  const client::Results results = value_of(client_of(call)->get(to_keys(call.at("keys")), to_call_options(call)));
  const client::ResultView result = results.at(0);
  return {{"reads", from_reads(results, 0)}, {"batch", result.batch}, {"rank", result.rank}};
}

Json Adapter::scan(const Json& call) {
  const std::size_t limit = call.value("limit", std::numeric_limits<std::size_t>::max());
  const auto [from, to] = to_range(call);
  client::ScanOptions options;
  options.page_pairs = call.value("page_pairs", 0U);
  options.reverse = call.value("reverse", false);
  options.call = to_call_options(call);
  std::vector<client::Pair> pairs;
  const auto visit = [&](const client::Pair& pair) {
    pairs.push_back(pair);
    return pairs.size() < limit;
  };
  const client::ScanPosition position = value_of(client_of(call)->scan(from, to, visit, options));
  return {{"pairs", from_pairs(pairs)},
          {"boundary", position.boundary},
          {"boundary_version", std::to_string(position.boundary_version)}};
}

Json Adapter::watch(const Json& call) {
  client::WatchOptions options;
  std::tie(options.from, options.to) = to_range(call);
  if (call.contains("after")) options.after = to_position(call["after"]);
  options.incarnation = call.value("incarnation", "");
  options.reconnect_us_max = to_us(call, "reconnect_ms", options.reconnect_us_max);
  // A watch has a connection of its own. It waits for a server that restarts as long as it would later.
  client::ClientOptions to_server = client_of(call)->options();
  to_server.wait_for_server_us = options.reconnect_us_max;
  const auto watch = value_of(client::Watch::connect(to_server));
  Json writes = Json::array(), form;
  const auto take = [&](const client::WatchedPart& part) {
    for (const client::WatchedWrite& write : part.writes) writes.push_back(from_write(write));
    const auto& [version, count] = part.position;
    form = {{"position", {{"version", std::to_string(version)}, {"writes", count}}},
            {"unfinished", part.unfinished},
            {"incarnation", std::string(part.incarnation)}};
    return writes.size() < call.at("count").get<std::size_t>();
  };
  check(watch->read(options, take));
  form["writes"] = std::move(writes);
  return form;
}

Json Adapter::list_parked(const Json& call) {
  Json list = Json::array();
  for (const auto& parked : value_of(client_of(call)->list_parked(to_call_options(call)))) {
    list.push_back(from_parked(parked));
  }
  return {{"parked", std::move(list)}};
}

Json Adapter::cancel_parked(const Json& call) {
  const client::CallOptions options = to_call_options(call);
  if (call.contains("parked_id")) {
    return {{"cancelled", value_of(client_of(call)->cancel_parked(call["parked_id"].get<std::uint64_t>(), options))}};
  }
  client::ParkedFilter filter;
  filter.client = call.value("of_client", "");
  if (call.contains("prefix")) filter.key_prefix = to_bytes(call["prefix"]);
  filter.older_than_us = to_us(call, "older_than_ms", 0);
  return {{"cancelled", value_of(client_of(call)->cancel_parked(filter, options))}};
}

Json Adapter::status(const Json& call) {
  const client::ServerStatus status = value_of(client_of(call)->status(to_call_options(call)));
  return {{"state", status.state}, {"version", status.version}, {"counters", status.counters}};
}

Json Adapter::list_sessions(const Json& call) {
  const auto activity = value_of(client::Activity::connect(client_of(call)->options()));
  const client::OpenSessions open = value_of(activity->sessions(0, to_call_options(call)));
  Json sessions = Json::array();
  for (const client::OpenSession& one : open.sessions) {
    sessions.push_back(
        {{"id", one.id}, {"requests", one.requests}, {"acknowledged_through", one.acknowledged_through}});
  }
  return {{"count", open.count}, {"sessions", std::move(sessions)}};
}

Json Adapter::begin(const Json& call) {
  Sender sender = sender_of(call);
  client::InteractiveTransaction transaction(sender.client.get(), sender.session.get(), to_call_options(call));
  const std::lock_guard lock(mutex_);
  transactions_[call.at("transaction")] =
      std::make_shared<Interactive>(Interactive{std::move(sender), std::move(transaction)});
  return Json::object();
}

Json Adapter::read(const Json& call) {
  Json values = Json::array();
  for (const client::Value& value : value_of(transaction_of(call)->transaction.get_many(to_keys(call.at("keys"))))) {
    values.push_back(from_value(value));
  }
  return {{"values", std::move(values)}};
}

Json Adapter::scan_in(const Json& call) {
  client::InteractiveTransaction& transaction = transaction_of(call)->transaction;
  const auto [from, to] = to_range(call);
  const bool reverse = call.value("reverse", false);
  return {{"pairs", from_pairs(value_of(reverse ? transaction.scan_reverse(from, to, call.at("limit"))
                                                : transaction.scan(from, to)))}};
}

Json Adapter::write(const Json& call) {
  client::InteractiveTransaction& transaction = transaction_of(call)->transaction;
  const std::string key = to_bytes(call.at("key"));
  const client::Value value = to_value(call.at("value"));
  const client::Expiry expiry = to_expiry(call);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    transaction.put(key, *integer, expiry);
  } else if (const auto* bytes = std::get_if<std::string>(&value)) {
    transaction.put(key, std::string_view(*bytes), expiry);
  } else {
    transaction.del(key);
  }
  return Json::object();
}

Json Adapter::commit(const Json& call) {
  client::InteractiveTransaction& transaction = transaction_of(call)->transaction;
  if (value_of(transaction.commit()) == client::CommitResult::conflict) {
    return {{"committed", false}, {"key", from_key(transaction.conflicting_key())}};
  }
  const std::optional<std::uint64_t> version = transaction.version();
  return {{"committed", true}, {"version", version ? Json(std::to_string(*version)) : Json()}};
}

Json Adapter::run_add(const Json& call) {
  const Sender sender = sender_of(call);
  const std::string key = to_bytes(call.at("key"));
  const std::int64_t delta = to_integer(call.at("delta"));
  std::int64_t sum = 0;
  const auto add = [&](client::InteractiveTransaction& transaction) -> client::Error {
    const auto value = transaction.get(key);
    if (!value) return value.error();
    const auto* integer = std::get_if<std::int64_t>(&*value);
    sum = (integer != nullptr ? *integer : 0) + delta;
    transaction.put(key, sum);
    return {};
  };
  check(client::InteractiveTransaction::run(sender.client.get(), sender.session.get(), add));
  return {{"value", std::to_string(sum)}};
}

}  // namespace kilokv::conformance
