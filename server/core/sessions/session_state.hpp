// What SessionTable keeps of a session and of a request. Only its own sources include this (session_table,
// session_requests, session_uploads, session_recovery).
//
// Thread safety: the comment of each member says which lock guards it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/core/sessions/attached_sinks.hpp"
#include "server/core/sessions/session_table.hpp"
#include "server/core/sessions/stored_results.hpp"
#include "server/core/sessions/upload.hpp"

namespace kilokv::server {

Status unknown_session();
Status session_of_other();  // it belongs to another user
// A later client has attached: `holder` calls, and the session belongs to `newest`.
Status session_fenced(std::uint64_t holder, std::uint64_t newest);
Status read_only_session();
Status frozen_session();  // it is of an earlier incarnation, and does not have the whole result
Status acknowledged_already(std::uint64_t number, std::uint64_t acknowledged_through);

// A set of indices. It takes memory for the indices that it has, however large they are.
class IndexSet {
 public:
  // Returns whether the index is new.
  bool insert(std::uint32_t index) {
    if (place_ != index / kWordBits) go_to(index / kWordBits);
    const bool is_new = (word_ & bit_of(index)) == 0;
    word_ |= bit_of(index);
    return is_new;
  }

  bool contains(std::uint32_t index) const {
    const std::uint32_t place = index / kWordBits;
    return ((place == place_ ? word_ : word_of(place)) & bit_of(index)) != 0;
  }

 private:
  static constexpr std::uint32_t kWordBits = 64;
  static std::uint64_t bit_of(std::uint32_t index) { return std::uint64_t{1} << index % kWordBits; }

  std::uint64_t word_of(std::uint32_t place) const {
    const auto found = words_.find(place);
    return found == words_.end() ? 0 : found->second;
  }

  void go_to(std::uint32_t place) {
    if (word_ != 0) words_[place_] = word_;
    place_ = place;
    word_ = word_of(place);
  }

  // The word of the last insert(). The next index is mostly in the same word, and a short request has no other.
  std::uint32_t place_ = 0;
  std::uint64_t word_ = 0;
  std::unordered_map<std::uint32_t, std::uint64_t> words_;  // all words, by their places; that of place_ may be older
};

// Marks the indices of a slice. Counts the indices that were marked before, and those that the request does not have.
class IndexMarker : public ResultVisitor {
 public:
  // `marks` null: all indices of the request were marked before.
  IndexMarker(std::uint32_t transactions, IndexSet* marks) : transactions_(transactions), marks_(marks) {}
  void transaction(const TransactionResult& result) override {
    if (result.index >= transactions_) {
      ++out_of_range;
    } else if (marks_ == nullptr || !marks_->insert(result.index)) {
      ++repeated;
    }
  }
  void guard_value(const ReadValue& /*value*/) override {}
  void read(std::uint32_t /*operation*/, const ReadValue& /*value*/) override {}

  std::uint32_t repeated = 0;
  std::uint32_t out_of_range = 0;

 private:
  const std::uint32_t transactions_;
  IndexSet* const marks_;
};

struct SessionTable::RequestState {
  RequestState(const Hash128& content_digest, std::uint32_t transaction_count)
      : digest(content_digest), transactions(transaction_count) {}

  const Hash128 digest;
  const std::uint32_t transactions;

  // Guarded by the session's mutex.
  bool in_flight = false;
  bool dropped = false;  // acknowledged, or its session ended, while it was in flight: nothing more is stored
  std::uint64_t stored_bytes = 0;
  std::uint64_t reserved_bytes = 0;  // for results that are still to come
  UploadedPart uploaded;             // of the last send that had the whole content; recovery does not restore it

  // Guarded by this mutex. Nothing that takes as long as results are large is done with it, because the answer worker
  // needs it.
  mutable std::mutex mutex;
  std::vector<StoredBytes> stored;
  std::uint32_t finished = 0;
  AttachedSinks sinks;
  std::unique_ptr<IndexSet> restored;  // recovery only: the indices that `stored` holds; null: all of them

  bool complete() const { return finished == transactions; }

  // All below are called without the mutex.
  std::vector<StoredBytes> stored_now() const;
  // Shows the replay, which was attached, and everything that comes meanwhile.
  void show(Replay* replay);
  // The indices that `slices`, the stored results, do not have. Requires: the client has sent the same content again.
  // So `transactions` is the size of a request that is in memory, and not only a number from the disk.
  std::vector<std::uint32_t> remaining(const std::vector<StoredBytes>& slices) const;
};

// What a session does not need any more. It is freed without a lock, because that may take a while.
struct SessionTable::Dropped {
  std::vector<std::shared_ptr<RequestState>> requests;
  std::vector<std::shared_ptr<Upload>> uploads;
};

struct SessionTable::Session {
  Session(const SessionId& session_id, DurationUs lease, std::string user_name, TimeUs now_us, ByteCounts* bytes_of_all,
          const UploadLimits& limits)
      : id(session_id),
        lease_us(lease),
        user(std::move(user_name)),
        total(bytes_of_all),
        deadline_us(now_us + lease),
        upload_counts(std::make_shared<UploadCounts>(limits.session_uploads_bytes_max,
                                                     " bytes of uploaded read sets of a session",
                                                     "--session-uploads-bytes-max")) {}

  const SessionId id;
  const DurationUs lease_us;
  const std::string user;   // whose session it is; empty: opened without a login
  ByteCounts* const total;  // of all sessions

  mutable std::mutex mutex;
  // It stays in the table until nothing of it is in flight, and stores nothing more. Its requests leave it when they
  // end, or with free_ended().
  bool closed = false;
  bool frozen = false;  // of an earlier incarnation: nothing of it runs any more. Only recovery sets it
  TimeUs deadline_us;
  std::uint64_t acknowledged_through = 0;
  // The holders of the session. Nobody but `newest` comes in. `durable` is the last one whose attach is durable. They
  // differ while an attach is on its way to the log.
  std::uint64_t newest_holder = 0, durable_holder = 0;
  std::uint64_t attempt = 0;  // the token of the attach that made the newest holder; 0: it had none
  std::uint64_t stored_bytes = 0, reserved_bytes = 0;
  std::uint32_t in_flight = 0;
  SessionOwner owner;
  std::map<std::uint64_t, std::shared_ptr<RequestState>> requests;
  std::map<std::uint64_t, std::shared_ptr<Upload>> uploads;
  const std::shared_ptr<UploadCounts> upload_counts;

  // Whether a client may use the session. The session of a user is for that user alone.
  bool allows(const Client* client) const { return client == nullptr || client->user() == user; }

  // All below require the mutex.
  // Whether this holder, who is `client`, may use the session. It may be closed.
  Status check(const Client* client, std::uint64_t holder) const {
    if (!allows(client)) return session_of_other();
    return holder == newest_holder ? Status() : session_fenced(holder, newest_holder);
  }

  // The owner counts the bytes of stored results, and those that are reserved.
  Held* bytes_of_owner() const { return owner.account(&Client::session_bytes); }
  void count_for_owner(std::uint64_t more, std::uint64_t less) {
    if (Held* bytes = bytes_of_owner()) bytes->add(more - less);
  }
  void give_owner(SessionOwner new_owner) {
    if (owner.known() || closed) return;
    owner = std::move(new_owner);
    count_for_owner(stored_bytes + reserved_bytes, 0);
  }

  // The same with an owner from before. It may hold more than its share then.
  void change_owner(SessionOwner new_owner) {
    if (!new_owner.known() || closed) return;
    count_for_owner(0, stored_bytes + reserved_bytes);
    owner = std::move(new_owner);
    count_for_owner(stored_bytes + reserved_bytes, 0);
  }

  void renew(TimeUs now_us) { deadline_us = std::max(deadline_us, now_us + lease_us); }

  std::shared_ptr<RequestState> request(std::uint64_t number) const {
    const auto it = requests.find(number);
    return it == requests.end() ? nullptr : it->second;
  }

  void acknowledge(std::uint64_t through, Dropped* dropped) {
    if (through > acknowledged_through) {
      acknowledged_through = through;
      drop(requests.begin(), requests.upper_bound(through), dropped);
      while (!uploads.empty() && uploads.begin()->first <= through) {
        dropped->uploads.push_back(std::move(uploads.begin()->second));
        uploads.erase(uploads.begin());
      }
    }
  }

  void reserve(RequestState* state, std::uint64_t bytes) {
    state->reserved_bytes += bytes;
    reserved_bytes += bytes;
    total->reserved.fetch_add(bytes, std::memory_order_relaxed);
    count_for_owner(bytes, 0);
  }

  // Gives back up to `bytes` of the request's reserved bytes.
  void unreserve(RequestState* state, std::uint64_t bytes) {
    bytes = std::min(bytes, state->reserved_bytes);
    state->reserved_bytes -= bytes;
    reserved_bytes -= bytes;
    total->reserved.fetch_sub(bytes, std::memory_order_relaxed);
    count_for_owner(0, bytes);
  }

  // Counts results that are stored with `state`. They count until the request is forgotten, because they take memory
  // until then. The reserved bytes shrink by the same amount.
  void charge(RequestState* state, std::size_t result_bytes) {
    const std::uint64_t bytes = result_bytes + kSliceBytes + (state->stored_bytes == 0 ? kRequestBytes : 0);
    state->stored_bytes += bytes;
    stored_bytes += bytes;
    total->stored.fetch_add(bytes, std::memory_order_relaxed);  // first, so that the sum is never too small
    count_for_owner(bytes, 0);
    unreserve(state, bytes);
  }

  void refund(RequestState* state) {
    const std::uint64_t bytes = std::exchange(state->stored_bytes, 0);
    stored_bytes -= bytes;
    total->stored.fetch_sub(bytes, std::memory_order_relaxed);
    count_for_owner(0, bytes);
  }

  using Requests = std::map<std::uint64_t, std::shared_ptr<RequestState>>;
  // Forgets the requests from `begin` to `end`. A request in flight is forgotten when it ends. Until then it needs room
  // for itself and for its sinks.
  void drop(Requests::iterator begin, Requests::iterator end, Dropped* dropped) {
    for (auto it = begin; it != end;) {
      RequestState& state = *it->second;
      state.dropped = true;
      const std::uint64_t needed = state.in_flight ? kRequestBytes + kSinksBytes : 0;
      unreserve(&state, state.reserved_bytes - std::min(state.reserved_bytes, needed));
      if (state.in_flight) {
        ++it;
      } else {
        refund(&state);
        dropped->requests.push_back(std::move(it->second));
        it = requests.erase(it);
      }
    }
  }

  void drop_uploads(Dropped* dropped) {
    for (auto& entry : uploads) dropped->uploads.push_back(std::move(entry.second));
    uploads.clear();
  }
  void drop_idle_uploads(TimeUs now_us, std::vector<std::shared_ptr<Upload>>* dropped) {
    std::erase_if(uploads, [&](auto& entry) {
      if (entry.second->idle_from_us() > now_us) return false;
      dropped->push_back(std::move(entry.second));
      return true;
    });
  }
  TimeUs uploads_idle_from_us() const {
    TimeUs first_us = kNever;
    for (const auto& entry : uploads) first_us = std::min(first_us, entry.second->idle_from_us());
    return first_us;
  }

  // A request in flight has ended. Returns whether the session is closed and nothing of it is in flight any more.
  bool land(std::uint64_t number, RequestState* state, bool keep) {
    state->in_flight = false;
    --in_flight;
    if (state->dropped || closed || !keep) {
      unreserve(state, state->reserved_bytes);
      refund(state);
      requests.erase(number);
    }
    return closed && in_flight == 0;
  }
};

}  // namespace kilokv::server
