#include "server/service/activity_calls.hpp"

#include <algorithm>
#include <utility>

#include "server/core/shown_key.hpp"
#include "server/service/encode.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kEntryBytes = 16;  // around an entry, in the lists that have it

// Counts the entries of an answer, and takes the last one back when it does not fit.
class Room {
 public:
  explicit Room(std::uint64_t bytes_max) : left_(bytes_max - std::min(bytes_max, kMessageBytesBound)) {}
  template <class Entries>
  bool keeps_last(Entries* entries) {
    const std::uint64_t bytes = (*entries)[entries->size() - 1].ByteSizeLong() + kEntryBytes;
    if (bytes > left_) {
      entries->RemoveLast();
      return false;
    }
    left_ -= bytes;
    return true;
  }

 private:
  std::uint64_t left_;
};

v1::KeyUse number_of(KeyUse use) {
  switch (use) {
    case KeyUse::read: return v1::KEY_USE_READ;
    case KeyUse::write: return v1::KEY_USE_WRITE;
    case KeyUse::failed_guard: return v1::KEY_USE_FAILED_GUARD;
    case KeyUse::wait: return v1::KEY_USE_WAIT;
  }
  return v1::KEY_USE_UNSPECIFIED;
}

v1::SlowReason number_of(SlowReason reason) {
  switch (reason) {
    case SlowReason::waiting: return v1::SLOW_REASON_WAITING;
    case SlowReason::queued: return v1::SLOW_REASON_QUEUED;
    case SlowReason::large_read: return v1::SLOW_REASON_LARGE_READ;
    case SlowReason::execution: return v1::SLOW_REASON_EXECUTION;
    case SlowReason::sync: return v1::SLOW_REASON_SYNC;
    case SlowReason::answer: return v1::SLOW_REASON_ANSWER;
  }
  return v1::SLOW_REASON_UNSPECIFIED;
}

std::uint64_t unsigned_of(DurationUs us) { return us < 0 ? 0 : static_cast<std::uint64_t>(us); }

void fill(const SlowTransaction& slow, const KeyViewer& viewer, v1::SlowTransaction* message) {
  message->set_reason(number_of(slow.reason));
  message->set_answered_us(slow.answered_us);
  message->set_total_us(unsigned_of(slow.total_us));
  message->set_queued_us(unsigned_of(slow.queued_us));
  message->set_waited_us(unsigned_of(slow.waited_us));
  message->set_execution_us(unsigned_of(slow.execution_us));
  message->set_sync_us(unsigned_of(slow.sync_us));
  message->set_answer_us(unsigned_of(slow.answer_us));
  message->set_client(slow.client);
  if (slow.session) message->set_session(shown(*slow.session));
  message->set_number(slow.request);
  message->set_index(slow.index);
  message->set_transactions(slow.transactions);
  message->set_outcome(static_cast<v1::Outcome>(slow.outcome));
  message->set_batch(slow.batch);
  message->set_admitted_batch(slow.admitted_batch);
  message->set_batch_transactions(slow.batch_transactions);
  message->set_reads(slow.reads);
  if (slow.guard != engine::kNone) {
    message->set_guard(slow.guard);
    const bool has_key = slow.guards_range || !slow.guard_key.empty();
    if (has_key) viewer.show(slow.guard_key, slow.guards_range, message->mutable_guard_key());
  }
  if (slow.trace.present()) {
    message->set_trace(trace_text(slow.trace));
    message->set_span(span_text(slow.trace));
  }
}

void fill(const SessionInfo& session, v1::SessionInfo* message) {
  message->set_id(shown(session.id));
  message->set_user(session.user);
  message->set_lease_us(unsigned_of(session.lease_us));
  message->set_lease_left_us(session.left_us);
  message->set_holder(session.holder);
  message->set_acknowledged_through(session.acknowledged_through);
  message->set_requests(session.requests);
  message->set_requests_in_flight(session.in_flight);
  message->set_uploads(session.uploads);
  message->set_stored_bytes(session.stored_bytes);
  message->set_reserved_bytes(session.reserved_bytes);
}

// Puts the first `limit` entries in order, and removes the others.
template <class Entry, class Before>
void keep_first(std::vector<Entry>* entries, std::size_t limit, const Before& before) {
  const std::size_t kept = std::min(limit, entries->size());
  std::partial_sort(entries->begin(), entries->begin() + static_cast<std::ptrdiff_t>(kept), entries->end(), before);
  entries->resize(kept);
}

}  // namespace

Result<std::uint32_t> limit_of(std::uint32_t asked, const ListLimit& limit) {
  if (asked <= limit.most) return asked == 0 ? limit.usual : asked;
  return Status::invalid({.field = "limit",
                          .limit = std::to_string(limit.most) + " entries",
                          .actual = std::to_string(asked) + " entries",
                          .setting = ""});
}

void KeyViewer::show(const std::string& key, bool is_range, v1::ShownKey* shown) const {
  shown->set_is_range(is_range);
  if (rights_ == nullptr || rights_->read.contains(key)) {
    shown->set_key(key);
  } else {
    shown->set_hash(key_hash_text(key, *secret_));
  }
}

Result<std::vector<KeyUse>> uses_of(v1::KeyUse asked) {
  std::vector<KeyUse> uses;
  for (const KeyUse use : {KeyUse::read, KeyUse::write, KeyUse::failed_guard, KeyUse::wait}) {
    if (asked == v1::KEY_USE_UNSPECIFIED || asked == number_of(use)) uses.push_back(use);
  }
  if (!uses.empty()) return uses;
  return Status::invalid({.field = "use",
                          .limit = "KEY_USE_READ, KEY_USE_WRITE, KEY_USE_FAILED_GUARD or KEY_USE_WAIT, or 0 for all",
                          .actual = std::to_string(asked),
                          .setting = ""});
}

void fill_hot_keys(const std::vector<KeyUse>& uses, const std::vector<HotKeys>& hot, const KeyViewer& viewer,
                   std::uint64_t bytes_max, v1::ListHotKeysResponse* response) {
  Room room(bytes_max);
  response->set_half_life_us(kHotKeysHalfLifeUs);
  response->set_sampled_one_in(1);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    v1::HotKeys* const message = response->add_uses();
    message->set_use(number_of(uses[i]));
    message->set_per_second(hot[i].per_second);
    response->set_sampled_one_in(std::max(response->sampled_one_in(), hot[i].sampled_one_in));
    for (const HotKey& key : hot[i].keys) {
      v1::HotKey* const entry = message->add_keys();
      viewer.show(key.key, key.is_range, entry->mutable_key());
      entry->set_per_second(key.per_second);
      entry->set_error(key.error);
      if (!room.keeps_last(message->mutable_keys())) break;
    }
  }
}

void fill_slow(const std::vector<SlowTransaction>& slow, std::uint32_t limit, const KeyViewer& viewer,
               std::uint64_t bytes_max, v1::ListSlowResponse* response) {
  Room room(bytes_max);
  for (const SlowTransaction& one : slow) {
    if (response->transactions_size() >= static_cast<int>(limit)) return;
    fill(one, viewer, response->add_transactions());
    if (!room.keeps_last(response->mutable_transactions())) return;
  }
}

void fill_slow_counts(const std::array<std::uint64_t, kSlowReasons>& counts, v1::ListSlowResponse* response) {
  for (std::size_t reason = 0; reason < kSlowReasons; ++reason) {
    v1::SlowCount* const count = response->add_counts();
    count->set_reason(number_of(static_cast<SlowReason>(reason)));
    count->set_transactions(counts[reason]);
  }
}

void fill_sessions(std::vector<SessionInfo> sessions, std::uint64_t count, std::uint64_t bytes_max,
                   v1::ListSessionsResponse* response) {
  response->set_count(count);
  std::sort(sessions.begin(), sessions.end(), [](const SessionInfo& a, const SessionInfo& b) {
    return a.bytes() != b.bytes() ? a.bytes() > b.bytes() : a.id.bytes < b.id.bytes;
  });
  Room room(bytes_max);
  for (const SessionInfo& session : sessions) {
    fill(session, response->add_sessions());
    if (!room.keeps_last(response->mutable_sessions())) return;
  }
}

void fill_connections(std::vector<ConnectionInfo> connections, std::uint32_t limit,
                      const std::function<std::string(const std::string& peer)>& user_of, std::uint64_t bytes_max,
                      v1::ListConnectionsResponse* response) {
  response->set_count(connections.size());
  keep_first(&connections, limit, [](const ConnectionInfo& a, const ConnectionInfo& b) {
    return a.received_bytes != b.received_bytes ? a.received_bytes > b.received_bytes : a.peer < b.peer;
  });
  Room room(bytes_max);
  for (const ConnectionInfo& connection : connections) {
    v1::ConnectionInfo* const message = response->add_connections();
    message->set_peer(connection.peer);
    message->set_user(user_of(connection.peer));
    message->set_age_us(static_cast<std::uint64_t>(std::max<std::int64_t>(0, connection.age_ms)) * 1000);
    message->set_received_bytes(connection.received_bytes);
    message->set_open_calls(connection.open_calls);
    message->set_unfinished_bytes(connection.unfinished_bytes);
    if (!room.keeps_last(response->mutable_connections())) return;
  }
}

}  // namespace kilokv::server
