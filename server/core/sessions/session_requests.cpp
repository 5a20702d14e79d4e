// Requests of sessions: admission of first sends and retries, delivery, abandonment.
#include <string>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {
namespace {

constexpr std::int64_t kRetryAfterUs = 100'000;  // gives a client time to acknowledge something

// A limit of reserve_room(). It is `times` the value of its flag.
struct RoomLimit {
  const char* field;
  const char* unit;
  const char* setting;
  std::uint64_t most;
  std::uint64_t times;
};

// `held`: without the request, which brings `more`. A request that brings nothing also needs room: if stored results
// fill a session completely, the client must first acknowledge some.
Status check_room(std::uint64_t held, std::uint64_t more, const RoomLimit& limit) {
  const std::uint64_t sum = held + more;
  if (held < limit.most && sum <= limit.most) return {};
  const bool takes_all = sum <= limit.most;  // it brings nothing: the sum is equal to the limit
  std::string most = (takes_all ? "less than " : "") + std::to_string(limit.most) + limit.unit;
  if (limit.times != 1) most += ", which is " + std::to_string(limit.times) + " times " + limit.setting;
  return Status::exhausted(ErrorReason::session_full,
                           {limit.field, most, std::to_string(sum) + limit.unit + " with this request", limit.setting},
                           kRetryAfterUs);
}

}  // namespace

std::vector<StoredBytes> SessionTable::RequestState::stored_now() const {
  const std::scoped_lock lock(mutex);
  return stored;
}

void SessionTable::RequestState::show(Replay* replay) {
  while (!replay->show()) {
    const std::scoped_lock lock(mutex);
    if (!sinks.go_on(replay)) return;
  }
}

std::vector<std::uint32_t> SessionTable::RequestState::remaining(const std::vector<StoredBytes>& slices) const {
  IndexSet done;
  IndexMarker marker(transactions, &done);
  for (const StoredBytes& bytes : slices) {
    const Result<StoredSlice> slice = StoredSlice::parse(bytes);
    KILOKV_CHECK(slice.ok());
    slice->visit(&marker);
  }
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < transactions; ++i) {
    if (!done.contains(i)) {
      indices.push_back(i);
    }
  }
  return indices;
}

Status acknowledged_already(std::uint64_t number, std::uint64_t acknowledged_through) {
  return Status(StatusCode::failed_precondition, ErrorReason::number_acknowledged,
                "request number " + std::to_string(number) + " is acknowledged already (acknowledged_through " +
                    std::to_string(acknowledged_through) + "): its results are gone");
}

static bool same_content(const UploadedPart& known, const Hash128& digest, std::uint32_t transactions,
                         const RequestHeader& header) {
  if (header.upload_gone) return known.same_content(header.uploaded);
  return digest == header.identity.digest && transactions == header.transactions;
}

// Checks who asks, and the number. If both are right, renews the lease and acknowledges. Requires the session's lock.
Status SessionTable::enter(Session* session, const Client* client, const RequestIdentity& identity, TimeUs now_us,
                           Dropped* dropped) {
  if (session->closed) {
    return unknown_session();
  }
  if (Status status = session->check(client, identity.holder); !status.ok()) return status;
  const std::uint64_t acknowledged = std::max(session->acknowledged_through, identity.acknowledged_through);
  if (identity.number <= acknowledged) {
    return acknowledged_already(identity.number, acknowledged);
  }
  session->renew(now_us);
  session->acknowledge(identity.acknowledged_through, dropped);
  return {};
}

static Status other_content(std::uint64_t number) {
  return Status(
      StatusCode::invalid_argument, ErrorReason::content_differs,
      "request number " + std::to_string(number) + " was used before, with other content: a retry must be the same");
}

// Whether results of this size can ever be stored.
Status SessionTable::check_size(std::uint64_t stored_bytes_max) const {
  const bool of_all = limits_.session_bytes_total_max < limits_.session_bytes_max;
  const std::uint64_t limit = of_all ? limits_.session_bytes_total_max : limits_.session_bytes_max;
  if (stored_bytes_max <= limit) {
    return {};
  }
  return Status::invalid({"transactions", std::to_string(limit) + " bytes of stored results",
                          "up to " + std::to_string(stored_bytes_max) + " bytes in one request",
                          of_all ? "--session-bytes-total-max" : "--session-bytes-max"});
}

// Requires the session's lock. The oldest request that is not acknowledged gets twice these limits, because nobody can
// acknowledge later requests before it. So it can always get in at some time.
Status SessionTable::reserve_room(Session* session, std::uint64_t number, RequestState* request,
                                  std::uint64_t stored_bytes_max) const {
  if (Status never = check_size(stored_bytes_max); !never.ok()) {
    return never;
  }
  const bool holds_others_up = !session->requests.empty() && number == session->acknowledged_through + 1;
  const std::uint64_t times = holds_others_up ? 2 : 1;
  Status status = check_room(
      session->requests.size(), 1,
      {"acknowledged_through", " requests", "--session-requests-max", times * limits_.session_requests_max, times});
  if (!status.ok()) return status;
  status = check_room(session->stored_bytes + session->reserved_bytes, stored_bytes_max,
                      {"acknowledged_through", " bytes of stored results", "--session-bytes-max",
                       times * limits_.session_bytes_max, times});
  if (!status.ok()) return status;
  session->reserve(request, stored_bytes_max);  // before the check, because another session may check at the same time
  const std::uint64_t held_by_all = stored_bytes() + reserved_bytes();
  status = check_room(held_by_all - stored_bytes_max, stored_bytes_max,
                      {"sessions", " bytes of stored results", "--session-bytes-total-max",
                       times * limits_.session_bytes_total_max, times});
  const Held* of_owner = session->bytes_of_owner();
  if (status.ok() && times == 1 && of_owner != nullptr && held_by_all != stored_bytes_max) {
    status = check_room(of_owner->load() - stored_bytes_max, stored_bytes_max,
                        {"sessions", " bytes of stored results of this client", "--session-bytes-total-max",
                         SharedLimit::share_of_client(limits_.session_bytes_total_max, held_by_all), 1});
  }
  if (!status.ok()) session->unreserve(request, stored_bytes_max);
  return status;
}

static SessionAdmission refused(Status status) {
  return {SessionAdmission::Kind::refused, std::move(status), false, {}, 0};
}

// Requires: the session's lock is held, and the session does not know the number.
SessionAdmission SessionTable::admit_new(Session* session, const RequestHeader& header) const {
  if (session->frozen) return refused(frozen_session());
  if (header.read_only) return refused(read_only_session());
  if (header.upload_gone) {
    return refused(missing_upload(header.identity.number, header.uploaded.keys, 0));
  }
  auto request = std::make_shared<RequestState>(header.identity.digest, header.transactions);
  request->uploaded = header.uploaded;
  if (Status full = reserve_room(session, header.identity.number, request.get(), header.stored_bytes_max); !full.ok()) {
    return refused(std::move(full));
  }
  request->sinks.add(header.sink);
  request->in_flight = true;
  ++session->in_flight;
  session->requests.emplace_hint(session->requests.end(), header.identity.number, std::move(request));
  return {SessionAdmission::Kind::run, {}, true, {}, header.stored_bytes_max};
}

SessionAdmission SessionTable::begin(const RequestHeader& header, TimeUs now_us) {
  const std::shared_ptr<Session> session = find(*header.identity.session);
  if (session == nullptr) {
    return refused(unknown_session());
  }
  for (;;) {
    std::shared_ptr<RequestState> request;
    Dropped dropped;  // freed after the lock
    {
      const std::scoped_lock lock(session->mutex);
      if (Status status = enter(session.get(), header.client.get(), header.identity, now_us, &dropped); !status.ok()) {
        return refused(std::move(status));
      }
      if (!session->owner.known()) session->give_owner(SessionOwner(header.client));
      request = session->request(header.identity.number);
      if (request == nullptr) {
        return admit_new(session.get(), header);
      }
      if (!same_content(request->uploaded, request->digest, request->transactions, header)) {
        return refused(other_content(header.identity.number));
      }
    }
    if (std::optional<SessionAdmission> admission = admit_known(session.get(), request.get(), header)) {
      return std::move(*admission);
    }
  }
}

// Returns nothing if the request has left the table, or has got more results, or the session has got another holder, in
// the meantime.
std::optional<SessionAdmission> SessionTable::admit_known(Session* session, RequestState* request,
                                                          const RequestHeader& header) const {
  Replay replay(header.sink, request->stored_now());
  if (header.may_show) {
    if (Status status = header.may_show(replay.slices()); !status.ok()) return refused(std::move(status));
  }
  AttachedSinks::Sinks gone;
  std::optional<SessionAdmission> admission = join(session, request, header, &replay, &gone);
  for (const std::shared_ptr<ResponseSink>& sink : gone) {
    sink->fail(Status(StatusCode::cancelled, "the client has gone away"));
  }
  if (!admission || admission->kind == SessionAdmission::Kind::refused) return admission;
  if (admission->kind == SessionAdmission::Kind::run) {
    admission->all_remaining = replay.slices().empty();
    if (!admission->all_remaining) admission->remaining = request->remaining(replay.slices());
  }
  request->show(&replay);
  return admission;
}

static Status too_many_calls() {
  return Status::exhausted(ErrorReason::calls_full,
                           {"number", std::to_string(kSinksMax) + " calls that wait for one request",
                            std::to_string(kSinksMax + 1) + " calls", ""},
                           kRetryAfterUs);
}

// The part of admit_known() that needs the locks. Afterwards the caller shows the replay, unless the call is refused.
std::optional<SessionAdmission> SessionTable::join(Session* session, RequestState* request, const RequestHeader& header,
                                                   Replay* replay, AttachedSinks::Sinks* gone) const {
  const std::scoped_lock request_lock(request->mutex);
  *gone = request->sinks.take_gone();  // otherwise a request that waits for long would collect a sink for each retry
  if (request->stored.size() != replay->slices().size()) return std::nullopt;
  if (request->sinks.full()) return refused(too_many_calls());
  request->restored.reset();  // recovery is over
  SessionAdmission admission;
  {
    const std::scoped_lock lock(session->mutex);
    if (session->closed || request->dropped || session->request(header.identity.number).get() != request ||
        header.identity.holder != session->newest_holder) {
      return std::nullopt;
    }
    if (!header.upload_gone) {
      request->uploaded = header.uploaded;
    }
    if (request->in_flight) {
      admission.kind = SessionAdmission::Kind::joined;
    } else if (request->complete()) {
      admission.kind = SessionAdmission::Kind::answered;
    } else if (session->frozen || header.read_only) {
      return refused(session->frozen ? frozen_session() : read_only_session());
    } else if (header.upload_gone) {
      return refused(missing_upload(header.identity.number, header.uploaded.keys, 0));
    } else {
      admission.kind = SessionAdmission::Kind::run;
      request->in_flight = true;
      ++session->in_flight;
      if (request->reserved_bytes == 0) {  // from recovery
        session->reserve(request, header.stored_bytes_max);
      }
      admission.reserved_bytes = request->reserved_bytes;
    }
  }
  if (admission.kind == SessionAdmission::Kind::answered) {
    replay->set_complete();
  } else {
    request->sinks.add(replay);
  }
  return admission;
}

void SessionTable::deliver(const SessionId& session_id, std::uint64_t number, const ResultSlice& live,
                           std::string encoded) {
  const std::shared_ptr<Session> session = find(session_id);
  const std::shared_ptr<RequestState> request = session == nullptr ? nullptr : in_flight(*session, number);
  if (request == nullptr) {
    return;
  }
  const auto bytes = std::make_shared<const std::string>(std::move(encoded));
  AttachedSinks::Sinks sinks;
  bool last = false, session_over = false;
  {
    const std::scoped_lock request_lock(request->mutex);
    KILOKV_CHECK(live.size() <= request->transactions - request->finished);
    request->finished += live.size();
    last = request->complete();
    {
      const std::scoped_lock lock(session->mutex);
      if (!request->dropped && !session->closed) {
        session->charge(request.get(), bytes->size());
        request->stored.push_back(bytes);
      }
      if (last) {
        session->unreserve(request.get(), request->reserved_bytes);
        session_over = session->land(number, request.get(), /*keep=*/true);
      }
    }
    sinks = request->sinks.take(bytes, last);
  }
  for (const std::shared_ptr<ResponseSink>& sink : sinks) {
    sink->results(live, last);
  }
  if (!last) {
    const std::scoped_lock request_lock(request->mutex);
    request->sinks.put_back(std::move(sinks));
  }
  if (session_over) {
    erase(session_id);
  }
}

void SessionTable::abandon(const SessionId& session_id, std::uint64_t number, const Status& status) {
  const std::shared_ptr<Session> session = find(session_id);
  const std::shared_ptr<RequestState> request = session == nullptr ? nullptr : in_flight(*session, number);
  if (request == nullptr) {
    return;
  }
  AttachedSinks::Sinks sinks;
  bool session_over = false;
  {
    const std::scoped_lock request_lock(request->mutex);
    {
      const std::scoped_lock lock(session->mutex);
      session_over = session->land(number, request.get(), /*keep=*/!request->stored.empty());
    }
    sinks = request->sinks.take_failed(status);
  }
  for (const std::shared_ptr<ResponseSink>& sink : sinks) {
    sink->fail(status);
  }
  if (session_over) {
    erase(session_id);
  }
}

std::shared_ptr<SessionTable::RequestState> SessionTable::in_flight(const Session& session, std::uint64_t number) {
  const std::scoped_lock lock(session.mutex);
  std::shared_ptr<RequestState> request = session.request(number);
  return request != nullptr && request->in_flight ? request : nullptr;
}

}  // namespace kilokv::server
