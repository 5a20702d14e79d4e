// New holders of sessions, and the list of what earlier holders have sent.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"

namespace kilokv::server {
namespace {

// A result in a message takes at least about so many bytes beside its reads.
constexpr std::uint64_t kListedResultBytes = 24;

}  // namespace

// An upload that an earlier holder began is of no use: the new one would have to send the same keys. So it is dropped.
Result<SessionEntry> SessionTable::attach(const SessionId& id, const std::shared_ptr<Client>& client,
                                          std::uint64_t attempt, TimeUs now_us) {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) return unknown_session();
  Dropped dropped;  // freed after the lock
  SessionOwner owner(client);
  const std::scoped_lock lock(session->mutex);
  if (session->closed) return unknown_session();
  if (!session->allows(client.get())) return session_of_other();
  if (attempt == 0 || attempt != session->attempt) {
    ++session->newest_holder;
    session->attempt = attempt;
    session->drop_uploads(&dropped);
    session->change_owner(std::move(owner));
  }
  session->renew(now_us);
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::attached;
  entry.identity.session = id;
  entry.identity.holder = session->newest_holder;
  entry.identity.acknowledged_through = session->acknowledged_through;
  return entry;
}

void SessionTable::attached(const SessionId& id, std::uint64_t holder) {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) return;
  const std::scoped_lock lock(session->mutex);
  session->durable_holder = std::max(session->durable_holder, holder);
}

Result<SessionList> SessionTable::list(const HeldSession& held, const Client* client, std::uint64_t from_number) const {
  const std::shared_ptr<Session> session = find(held.id);
  if (session == nullptr) return unknown_session();
  const std::scoped_lock lock(session->mutex);
  if (session->closed) return unknown_session();
  if (Status status = session->check(client, held.holder); !status.ok()) return status;
  SessionList list;
  list.holder = held.holder;
  list.lease_us = session->lease_us;
  list.frozen = session->frozen;
  list.acknowledged_through = session->acknowledged_through;
  const bool is_further = from_number > session->acknowledged_through;
  auto it = is_further ? session->requests.lower_bound(from_number)
                       : session->requests.upper_bound(session->acknowledged_through);
  for (; it != session->requests.end() && list.requests.size() < kListedRequestsMax; ++it) {
    ListedRequest& listed = list.requests.emplace_back();
    listed.number = it->first;
    listed.transactions = it->second->transactions;
    listed.in_flight = it->second->in_flight;
    list.bytes += it->second->stored_bytes;
  }
  if (it != session->requests.end()) list.goes_on_at(it->first);
  return list;
}

// Returns whether there is room for more results. Requires: no lock is held.
bool SessionTable::add_results_of(const RequestState& state, BatchNumber boundary, std::uint64_t shown,
                                  std::uint64_t bytes_max, std::uint64_t* bytes, ListedRequest* listed) {
  for (const StoredBytes& stored : state.stored_now()) {
    const StoredSlice slice = StoredSlice::of_checked(stored);
    if (slice.batch() > boundary) break;
    listed->decided += slice.size();
    if (shown >= slice.size()) {
      shown -= slice.size();
      continue;
    }
    if (*bytes >= bytes_max) continue;  // but it counts as decided
    *bytes += stored->size() + kListedResultBytes * slice.size();
    if (listed->results.empty()) listed->shown = static_cast<std::uint32_t>(std::exchange(shown, 0));
    listed->results.push_back(std::make_shared<const StoredSlice>(slice));
  }
  KILOKV_CHECK(listed->decided + listed->parked <= listed->transactions);
  if (listed->in_flight) listed->queued = listed->transactions - listed->decided - listed->parked;
  return *bytes < bytes_max;
}

Status SessionTable::add_results(const SessionId& id, BatchNumber boundary, const SessionListPosition& from,
                                 std::uint64_t bytes_max, SessionList* list) const {
  const std::shared_ptr<Session> session = find(id);
  if (session == nullptr) return unknown_session();
  std::vector<ListedRequest> requests;
  std::uint64_t bytes = 0;
  bool has_room = true;
  for (ListedRequest& listed : list->requests) {
    if (!has_room) {
      list->goes_on_at(listed.number);
      break;
    }
    std::shared_ptr<RequestState> state;
    {
      const std::scoped_lock lock(session->mutex);
      if (session->closed) return unknown_session();
      state = session->request(listed.number);
    }
    if (state == nullptr) continue;
    const std::uint64_t shown = listed.number == from.number ? from.results : 0;
    has_room = add_results_of(*state, boundary, shown, bytes_max, &bytes, &listed);
    requests.push_back(std::move(listed));
  }
  list->requests = std::move(requests);
  return {};
}

}  // namespace kilokv::server
