#include "kilokv/activity.hpp"

#include <utility>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/reach.hpp"

namespace kilokv::client {
namespace {

constexpr KeyUse kUses[] = {KeyUse::read, KeyUse::write, KeyUse::failed_guard, KeyUse::wait};

v1::KeyUse number_of(KeyUse use) {
  switch (use) {
    case KeyUse::read: return v1::KEY_USE_READ;
    case KeyUse::write: return v1::KEY_USE_WRITE;
    case KeyUse::failed_guard: return v1::KEY_USE_FAILED_GUARD;
    case KeyUse::wait: return v1::KEY_USE_WAIT;
  }
  return v1::KEY_USE_UNSPECIFIED;
}

const char* name_of(v1::SlowReason reason) {
  switch (reason) {
    case v1::SLOW_REASON_WAITING: return "waiting";
    case v1::SLOW_REASON_QUEUED: return "queued";
    case v1::SLOW_REASON_LARGE_READ: return "large_read";
    case v1::SLOW_REASON_EXECUTION: return "execution";
    case v1::SLOW_REASON_SYNC: return "sync";
    case v1::SLOW_REASON_ANSWER: return "answer";
    default: return "unknown";  // of a newer server
  }
}

ShownKey to_key(const v1::ShownKey& from) { return {from.key(), from.hash(), from.is_range()}; }

SlowTransaction to_slow(const v1::SlowTransaction& from) {
  SlowTransaction slow;
  slow.reason = name_of(from.reason());
  slow.answered_us = from.answered_us();
  slow.total_us = from.total_us();
  slow.queued_us = from.queued_us();
  slow.waited_us = from.waited_us();
  slow.execution_us = from.execution_us();
  slow.sync_us = from.sync_us();
  slow.answer_us = from.answer_us();
  slow.client = from.client();
  slow.session = from.session();
  slow.request = from.number();
  slow.index = from.index();
  slow.transactions = from.transactions();
  slow.outcome = static_cast<Outcome>(from.outcome());
  slow.batch = from.batch();
  slow.admitted_batch = from.admitted_batch();
  slow.batch_transactions = from.batch_transactions();
  slow.reads = from.reads();
  if (from.has_guard()) slow.guard = from.guard();
  slow.guard_key = to_key(from.guard_key());
  slow.trace = from.trace();
  slow.span = from.span();
  return slow;
}

OpenSession to_session(const v1::SessionInfo& from) {
  return {.id = from.id(),
          .user = from.user(),
          .lease_us = from.lease_us(),
          .lease_left_us = from.lease_left_us(),
          .holder = from.holder(),
          .acknowledged_through = from.acknowledged_through(),
          .requests = from.requests(),
          .requests_in_flight = from.requests_in_flight(),
          .uploads = from.uploads(),
          .stored_bytes = from.stored_bytes(),
          .reserved_bytes = from.reserved_bytes()};
}

OpenConnection to_connection(const v1::ConnectionInfo& from) {
  return {.peer = from.peer(),
          .user = from.user(),
          .age_us = from.age_us(),
          .received_bytes = from.received_bytes(),
          .open_calls = from.open_calls(),
          .unfinished_bytes = from.unfinished_bytes()};
}

class RemoteActivity final : public Activity {
 public:
  RemoteActivity(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : connection_(options, credentials) {}

  Error reach() { return reach_server(&connection_); }

  Expected<HotKeys> hot_keys(std::optional<KeyUse> use, std::uint32_t limit, const CallOptions& options) override {
    v1::ListHotKeysRequest request;
    if (use) request.set_use(number_of(*use));
    request.set_limit(limit);
    v1::ListHotKeysResponse response;
    const Error error = call("ListHotKeys", options,
                             [&](auto* stub, auto* context) { return stub->ListHotKeys(context, request, &response); });
    if (error) return error;
    HotKeys hot;
    hot.sampled_one_in = response.sampled_one_in();
    hot.half_life_us = response.half_life_us();
    for (const v1::HotKeys& from : response.uses()) {
      for (const KeyUse known : kUses) {
        if (number_of(known) != from.use()) continue;
        HotKeysOfUse& of_use = hot.uses.emplace_back();
        of_use.use = known;
        of_use.per_second = from.per_second();
        for (const v1::HotKey& key : from.keys()) {
          of_use.keys.push_back({to_key(key.key()), key.per_second(), key.error()});
        }
      }
    }
    return hot;
  }

  Expected<SlowTransactions> slow(std::uint32_t limit, const CallOptions& options) override {
    v1::ListSlowRequest request;
    request.set_limit(limit);
    v1::ListSlowResponse response;
    const Error error = call("ListSlow", options,
                             [&](auto* stub, auto* context) { return stub->ListSlow(context, request, &response); });
    if (error) return error;
    SlowTransactions slow;
    slow.threshold_us = response.threshold_us();
    for (const v1::SlowTransaction& from : response.transactions()) slow.transactions.push_back(to_slow(from));
    for (const v1::SlowCount& count : response.counts()) {
      slow.counts.emplace_back(name_of(count.reason()), count.transactions());
    }
    return slow;
  }

  Expected<OpenSessions> sessions(std::uint32_t limit, const CallOptions& options) override {
    v1::ListSessionsRequest request;
    request.set_limit(limit);
    v1::ListSessionsResponse response;
    const Error error = call("ListSessions", options, [&](auto* stub, auto* context) {
      return stub->ListSessions(context, request, &response);
    });
    if (error) return error;
    OpenSessions open;
    open.count = response.count();
    for (const v1::SessionInfo& from : response.sessions()) open.sessions.push_back(to_session(from));
    return open;
  }

  Expected<OpenConnections> connections(std::uint32_t limit, const CallOptions& options) override {
    v1::ListConnectionsRequest request;
    request.set_limit(limit);
    v1::ListConnectionsResponse response;
    const Error error = call("ListConnections", options, [&](auto* stub, auto* context) {
      return stub->ListConnections(context, request, &response);
    });
    if (error) return error;
    OpenConnections open;
    open.count = response.count();
    for (const v1::ConnectionInfo& from : response.connections()) open.connections.push_back(to_connection(from));
    return open;
  }

 private:
  template <class Attempt>
  Error call(const char* name, const CallOptions& options, const Attempt& attempt) {
    return connection_.call(name, connection_.deadline(options), Retry::always, attempt);
  }

  Connection connection_;
};

}  // namespace

const char* to_string(KeyUse use) {
  switch (use) {
    case KeyUse::read: return "read";
    case KeyUse::write: return "write";
    case KeyUse::failed_guard: return "failed_guard";
    case KeyUse::wait: return "wait";
  }
  return "";
}

Expected<std::unique_ptr<Activity>> Activity::connect(const ClientOptions& options) {
  return connect_as<RemoteActivity, Activity>(options);
}

}  // namespace kilokv::client
