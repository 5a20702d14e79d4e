// Attaching to a session (attach.hpp). A long list comes in several answers.
#include "client/lib/src/attach.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <utility>

#include "client/lib/src/error.hpp"
#include "client/lib/src/result_columns.hpp"

namespace kilokv::client {
namespace {

using State = KnownRequest::State;

// More transactions than any server accepts in a request. A list that says so is wrong, and would take much memory.
constexpr std::uint32_t kTransactionsMax = 1u << 24;

Error contradiction() {
  return make_error(ErrorCode::internal, "the server sent a list of requests that contradicts itself");
}

State state_of(v1::KnownRequest::State state) {
  switch (state) {
    case v1::KnownRequest::STATE_DECIDED: return State::decided;
    case v1::KnownRequest::STATE_PARTLY_DECIDED: return State::partly_decided;
    case v1::KnownRequest::STATE_PARKED: return State::parked;
    default: return State::queued;  // of what is accepted, it says least
  }
}

// Adds the request to the list, or further results to its last request.
Error add(v1::KnownRequest* message, std::vector<KnownRequest>* list) {
  if (message->transactions() > kTransactionsMax) return contradiction();
  if (list->empty() || list->back().number < message->number()) {
    KnownRequest& known = list->emplace_back();
    known.number = message->number();
    known.transactions = message->transactions();
    known.results.columns().reset(message->transactions());
  }
  KnownRequest& known = list->back();
  if (known.number != message->number() || known.transactions != message->transactions()) return contradiction();
  known.state = state_of(message->state());
  known.decided = message->decided();
  known.parked = message->parked();
  known.queued = message->queued();
  auto rows = std::make_unique<v1::ResultRows>();
  rows->mutable_results()->Swap(message->mutable_results());
  std::vector<std::uint32_t> fresh;
  return known.results.columns().add(std::move(rows), &fresh);
}

// Calls until the list is complete. `response`: the last answer, with everything but the requests.
Error list_all(Connection* connection, v1::AttachSessionRequest* request, TimePoint deadline,
               v1::AttachSessionResponse* response, std::vector<KnownRequest>* list) {
  for (;;) {
    // It may arrive twice. Then the token keeps the holder, and a list changes nothing.
    Error error = connection->call("AttachSession", deadline, Retry::always, [&](auto* stub, auto* context) {
      return stub->AttachSession(context, *request, response);
    });
    if (error) return error;
    for (v1::KnownRequest& message : *response->mutable_requests()) {
      if (error = add(&message, list); error) return error;
    }
    if (!response->more()) return {};
    const bool goes_on = std::pair(response->next_number(), response->next_result()) >
                         std::pair(request->from_number(), request->from_result());
    if (!goes_on || response->holder() == 0) return contradiction();
    request->set_holder(response->holder());
    request->set_from_number(response->next_number());
    request->set_from_result(response->next_result());
  }
}

std::string random_token() {
  std::array<std::uint32_t, 2> words;
  std::random_device random;
  for (std::uint32_t& word : words) word = random();
  return {reinterpret_cast<const char*>(words.data()), sizeof words};
}

}  // namespace

Expected<Attached> attach(Connection* connection, const std::string& id, std::uint64_t numbers_used,
                          TimePoint deadline) {
  v1::AttachSessionRequest request;
  v1::AttachSessionResponse response;
  request.set_session(id);
  request.set_attempt(random_token());
  Attached attached;
  if (Error error = list_all(connection, &request, deadline, &response, &attached.requests)) return error;
  SessionIdentity& identity = attached.identity;
  identity.id = id;
  identity.lease_us = response.lease_us();
  identity.holder = response.holder();
  identity.acknowledged_through = response.acknowledged_through();
  attached.frozen = response.frozen();
  attached.incarnation = response.incarnation();
  const std::uint64_t last_known = attached.requests.empty() ? 0 : attached.requests.back().number;
  identity.inherited_through = std::max({numbers_used, last_known, identity.acknowledged_through});
  return attached;
}

Expected<std::vector<KnownRequest>> list_requests(Connection* connection, const std::string& id, std::uint64_t holder,
                                                  TimePoint deadline) {
  if (holder == 0) {
    return make_error(ErrorCode::failed_precondition,
                      "the session was opened by this client, which knows its requests: only a client that has "
                      "attached can ask for them");
  }
  v1::AttachSessionRequest request;
  v1::AttachSessionResponse response;
  request.set_session(id);
  request.set_holder(holder);
  std::vector<KnownRequest> list;
  if (Error error = list_all(connection, &request, deadline, &response, &list)) return error;
  return list;
}

const char* to_string(KnownRequest::State state) {
  switch (state) {
    case State::acknowledged: return "acknowledged";
    case State::not_known: return "not_known";
    case State::queued: return "queued";
    case State::parked: return "parked";
    case State::partly_decided: return "partly_decided";
    case State::decided: return "decided";
  }
  return "not_known";
}

State AttachedSession::state_of(std::uint64_t number) const {
  if (number <= acknowledged_through) return State::acknowledged;
  const auto found = std::lower_bound(requests.begin(), requests.end(), number,
                                      [](const KnownRequest& known, std::uint64_t n) { return known.number < n; });
  return found != requests.end() && found->number == number ? found->state : State::not_known;
}

}  // namespace kilokv::client
