// Role: see adapter.hpp. This file has clients, sessions, transactions and their answers.
#include "tests/conformance/adapters/cpp/adapter.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tests/conformance/adapters/cpp/answer_forms.hpp"
#include "tests/conformance/adapters/cpp/call_forms.hpp"
#include "tests/conformance/adapters/cpp/failure.hpp"

namespace kilokv::conformance {

Adapter::Method Adapter::method(const std::string& name) {
  static const std::map<std::string, Method> kMethods = {
      {"open_client", &Adapter::open_client},
      {"close_client", &Adapter::close_client},
      {"open_session", &Adapter::open_session},
      {"attach_session", &Adapter::attach_session},
      {"known_requests", &Adapter::known_requests},
      {"acknowledge_through", &Adapter::acknowledge_through},
      {"close_session", &Adapter::close_session},
      {"execute", &Adapter::execute},
      {"resume", &Adapter::resume},
      {"cancel", &Adapter::cancel},
      {"get", &Adapter::get},
      {"scan", &Adapter::scan},
      {"watch", &Adapter::watch},
      {"list_parked", &Adapter::list_parked},
      {"cancel_parked", &Adapter::cancel_parked},
      {"status", &Adapter::status},
      {"list_sessions", &Adapter::list_sessions},
      {"begin", &Adapter::begin},
      {"read", &Adapter::read},
      {"scan_in", &Adapter::scan_in},
      {"write", &Adapter::write},
      {"commit", &Adapter::commit},
      {"run_add", &Adapter::run_add},
  };
  const auto found = kMethods.find(name);
  return found == kMethods.end() ? nullptr : found->second;
}

Json Adapter::answer(const Json& call) {
  const std::string name = call.at("call");
  const Method found = method(name);
  if (found == nullptr) return {{"unsupported", "there is no call " + name}};
  try {
    return {{"ok", (this->*found)(call)}};
  } catch (const Misuse& misuse) {
    return {{"misuse", misuse.what()}};
  } catch (const Failure& failure) {
    // Each refusal of a server has a reason.
    const client::Error& error = failure.error;
    const bool of_library = error.code == client::ErrorCode::invalid_argument && error.reason.empty();
    return of_library ? Json{{"misuse", error.message}} : Json{{"error", from_error(error)}};
  }
}

Json Adapter::open_client(const Json& call) {
  client::ClientOptions options;
  options.endpoint = call.at("endpoint");
  options.wait_for_server_us = to_us(call, "wait_for_server_ms", 0);
  options.request_timeout_us = to_us(call, "request_timeout_ms", options.request_timeout_us);
  options.token = call.value("token", "");
  std::shared_ptr<client::Client> opened = value_of(client::Client::connect(options));
  const std::lock_guard lock(mutex_);
  clients_[call.at("client")] = std::move(opened);
  return Json::object();
}

Json Adapter::close_client(const Json& call) {
  const std::lock_guard lock(mutex_);
  clients_.erase(call.at("client").get<std::string>());
  return Json::object();
}

Json Adapter::keep(const Json& call, Sender sender) {
  Json form = {{"session_id", sender.session->id()}, {"holder", sender.session->holder()}};
  const std::lock_guard lock(mutex_);
  sessions_[call.at("session")] = std::move(sender);
  return form;
}

Json Adapter::open_session(const Json& call) {
  const auto of = client_of(call);
  return keep(call, {of, value_of(of->open_session({.lease_us = to_us(call, "lease_ms", 0)}))});
}

Json Adapter::attach_session(const Json& call) {
  const auto of = client_of(call);
  client::AttachOptions options;
  options.numbers_used = call.value("numbers_used", std::uint64_t{0});
  client::AttachedSession attached = value_of(of->attach_session(call.at("session_id").get<std::string>(), options));
  Json form = keep(call, {of, std::move(attached.session)});
  form["acknowledged_through"] = attached.acknowledged_through;
  form["frozen"] = attached.frozen;
  form["requests"] = from_known(attached.requests);
  return form;
}

Json Adapter::known_requests(const Json& call) {
  return {{"requests", from_known(value_of(session_of(call)->known_requests(to_call_options(call))))}};
}

Json Adapter::acknowledge_through(const Json& call) {
  session_of(call)->acknowledge_through(call.at("request"));
  return Json::object();
}

Json Adapter::close_session(const Json& call) {
  if (call.value("keep_open", false)) session_of(call)->keep_open();
  Sender closed;
  const std::lock_guard lock(mutex_);
  std::swap(closed, sessions_.at(call.at("session")));
  sessions_.erase(call.at("session").get<std::string>());
  return Json::object();
}

Json Adapter::execute(const Json& call) {
  const Sender sender = sender_of(call);
  const client::Batch batch = to_batch(call.at("transactions"));
  if (sender.session) return from_request(value_of(sender.session->execute(batch, to_call_options(call))));
  return {{"results", from_results(value_of(sender.client->execute(batch, to_call_options(call))))}};
}

Json Adapter::resume(const Json& call) {
  const client::Batch batch = to_batch(call.at("transactions"));
  return from_request(value_of(session_of(call)->resume(call.at("request"), batch, to_call_options(call))));
}

Json Adapter::cancel(const Json& call) {
  std::optional<std::uint32_t> index;
  if (call.contains("index")) index = call["index"].get<std::uint32_t>();
  return {{"cancelled", value_of(session_of(call)->cancel(call.at("request"), index))}};
}

std::shared_ptr<client::Client> Adapter::client_of(const Json& call) {
  const std::lock_guard lock(mutex_);
  return clients_.at(call.at("client"));
}

std::shared_ptr<client::Session> Adapter::session_of(const Json& call) { return sender_of(call).session; }

Adapter::Sender Adapter::sender_of(const Json& call) {
  if (!call.contains("session")) return {client_of(call), nullptr};
  const std::lock_guard lock(mutex_);
  return sessions_.at(call["session"]);
}

std::shared_ptr<Adapter::Interactive> Adapter::transaction_of(const Json& call) {
  const std::lock_guard lock(mutex_);
  return transactions_.at(call.at("transaction"));
}

}  // namespace kilokv::conformance
