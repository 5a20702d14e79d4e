// The calls that wait for the answer of one request in a session: the first one, and the retries that joined it.
//
// To call a sink takes as long as the results are large. So no lock is held meanwhile: otherwise a retry that gets many
// megabytes would stop the answer worker, and with it all clients. Instead, the thread that calls a sink has the sink
// for itself. There are two such threads:
//   - The answer worker takes all sinks that wait, calls them, and puts them back.
//   - A retry gets the stored results first, from its own thread (Replay). Results that come meanwhile are added to the
//     replay, and the same thread shows them. Then the sink waits with the others.
//
// Thread safety: the request's lock guards AttachedSinks. Replay says which of its members need that lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/request.hpp"
#include "server/core/sessions/stored_results.hpp"

namespace kilokv::server {

// How many calls may wait for the answer of one request: the first one, and retries that joined it.
inline constexpr std::size_t kSinksMax = 16;

// The memory that these sinks take, with their places in the lists. A request has this reserved from its admission
// until it ends: clients that have gone away leave their sinks with it.
inline constexpr std::uint64_t kSinksBytes = kSinksMax * (kSinkBytes + 3 * sizeof(void*));

// Shows one sink the stored results of its request, and what is added meanwhile. One thread makes a replay, and shows
// it to its end. The replay shares the slices with the session. If the session drops them in the meantime, they stay
// until they are shown, and count nowhere for this short time.
class Replay {
 public:
  Replay(std::shared_ptr<ResponseSink> sink, std::vector<StoredBytes> stored) : sink_(std::move(sink)) {
    now_.slices = std::move(stored);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // The slices that are shown next. Only the thread of the replay calls this and all below, without the lock.
  const std::vector<StoredBytes>& slices() const { return now_.slices; }
  // They are all results of the request.
  void set_complete() { now_.complete = true; }
  // Shows them. Returns whether the sink has had its last call.
  bool show();

 private:
  friend class AttachedSinks;
  struct Part {
    std::vector<StoredBytes> slices;
    bool complete = false;          // the last of them is the last of the request
    std::optional<Status> failure;  // the request has failed after them
  };

  const std::shared_ptr<ResponseSink> sink_;
  Part now_;   // only for the thread of the replay
  Part next_;  // guarded by the request's lock
};

class AttachedSinks {
 public:
  using Sinks = std::vector<std::shared_ptr<ResponseSink>>;

  // Whether no further call may wait. A client that has gone counts while its sink is being called.
  bool full() const { return waiting_.size() + called_ + replays_.size() >= kSinksMax; }

  void add(std::shared_ptr<ResponseSink> sink) { waiting_.push_back(std::move(sink)); }
  void add(Replay* replay) { replays_.push_back(replay); }
  // After Replay::show(). Returns whether there is more to show. If not, the sink waits from now on.
  bool go_on(Replay* replay);

  // Returns the sinks that the caller calls now with the same results: those that wait. Replays get the slice. If it is
  // the last one, no sink is attached any more. Otherwise the caller puts the sinks back.
  Sinks take(const StoredBytes& slice, bool last);
  void put_back(Sinks called);
  // The same for a request that fails. No sink is attached any more.
  Sinks take_failed(const Status& status);
  // Detaches the sinks whose client has gone. The caller calls fail() of each.
  Sinks take_gone();

 private:
  Sinks waiting_;
  std::size_t called_ = 0;  // how many are with the answer worker
  std::vector<Replay*> replays_;
};

}  // namespace kilokv::server
