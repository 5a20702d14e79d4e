// The transactions that wait: which of them wake, in which order they run again, and how their wait ends otherwise.
//
// A parked transaction
//   becomes a candidate  when a batch wrote a key of its guards (end_batch);
//   wakes                when it is a candidate and its guards would let it decide (wake_candidates). Otherwise it
//                        stays parked, because to run it again would change nothing;
//   is due               when the stamp of the next batch reaches its deadline, or the next time with which one of its
//                        guards compares the stamp. A key may hold this time. So the time is looked up when the
//                        transaction is parked, and when it is a candidate;
//   leaves               when the batcher takes it (hand_out), a client cancels it (take_cancelled), its request fails
//                        (forget), or the server drains (then its request fails). A transaction that runs and still
//                        waits is parked again, under the id that it had.
//
// Invariants:
// - Clients take turns in everything that costs time here: in the looks at their candidates, and in the places of their
//   awake and of their due transactions in batches. So a client with little that waits does not wait for all that
//   others have (lane_turns.hpp). A lane of the parking lot is what one client has.
// - Within a client, what woke first is offered first, and what was due first. What gets no place keeps its turn.
// - Awake and due transactions are chosen alternately. So if many are awake and many are due, each get half of the
//   places, and due times that come together do not keep out those that wake.
// - No step looks at more than a bounded number of transactions, or of their bytes (kLooksPerStep), and each step looks
//   at one at least.
// - Nobody is forgotten: a candidate stays one until it was looked at, and what is awake stays awake until it leaves.
// - What belongs to a request that has failed (`is_over`) neither runs nor is cancelled. The caller forgets it, a
//   part at a time.
// - A cancel begins only when no part of its request is queued. Each transaction of the request is then either decided,
//   or parked here.
// - A cancel looks at what it names in order of id, a part at a time. Cancels take turns. What is parked again keeps
//   its id, so a cancel passes over nothing that still waits. What runs before the cancel reaches it is decided, and is
//   not cancelled.
// - After close() nothing more is parked.
//
// Thread safety: only the executor's thread; any thread may call parked() and parked_bytes().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "engine/txn/columns.hpp"
#include "server/core/clients/client_turns.hpp"
#include "server/core/options.hpp"
#include "server/core/request_identity.hpp"
#include "server/core/waiting/parked_transaction.hpp"
#include "server/core/waiting/parking_lot.hpp"

namespace kilokv::server {

class Waiting {
 public:
  // `is_over`: whether the request of a parked transaction has failed; none: never.
  explicit Waiting(const DatabaseOptions& options, std::function<bool(const Parked&)> is_over = {});

  // Parks transaction t of `columns`, and returns its id. Errors: RESOURCE_EXHAUSTED, as ParkingLot::park; UNAVAILABLE
  // after close().
  Result<std::uint64_t> park(const engine::TransactionColumns& columns, std::size_t t, Parked parked);
  // A batch has ended, and the transactions that it postponed are parked. `images`: of the keys that it wrote
  // (Engine::before_images); not needed if nothing is parked.
  void end_batch(std::span<const engine::BeforeImage> images);
  bool empty() const { return lot_.empty(); }

  // Wakes candidates, a bounded number after each batch. If the server has nothing else to do (`idle`), rounds may
  // follow one another without a batch between. `last`: the newest executed batch.
  void wake_candidates(const engine::Engine& engine, BatchNumber last, bool idle);
  bool has_candidates() const { return lot_.has_candidates(); }
  std::size_t awake() const { return lot_.awake(); }
  // When the next transaction that is not awake is due (ParkingLot::next_due_us).
  TimeUs next_due_us() const { return lot_.next_due_us(); }

  // What becomes of a transaction that hand_out() offers.
  enum class Answer {
    taken,    // it goes into the batch, at the cost of Parked::part
    put_off,  // its client gets no more places in this batch
    dropped,  // it leaves without a place
    full,     // nobody gets a place any more
  };
  // Offers transactions that are due at `stamp_us` or awake, in the turns of their clients. `answer`: a function from
  // Parked& to Answer; it may change the estimate of the cost. Then calls `append`, a function of const Parked&, for
  // those that were taken, in the order of their first arrival, and they leave. At most `max` are taken or dropped.
  // Returns how many were taken.
  template <class AnswerFor, class Append>
  std::size_t hand_out(TimeUs stamp_us, std::size_t max, const AnswerFor& answer, const Append& append) {
    begin_hand_out(stamp_us, max);
    while (Parked* const parked = next_offer()) {
      if (!settle(parked, answer(*parked))) break;
    }
    std::sort(chosen_.begin(), chosen_.end());
    for (const auto& [arrival, id, parked] : chosen_) {
      append(std::as_const(*parked));
      static_cast<void>(lot_.take(id));
    }
    return chosen_.size();
  }

  // Cancels the transactions that the target names, as soon as their request has left the queue. A transaction that is
  // parked for the first time after the cancel has begun is not cancelled. `now_us`: the wall clock, or the last stamp.
  void cancel(CancelTarget target, TimeUs now_us, std::function<void(Result<std::uint64_t>)> done);
  struct Cancelled {
    std::vector<Parked> parked;  // these have left
    // Gets `count`, the number of all that this cancel has cancelled, when it is durable. Empty: the cancel goes on.
    std::function<void(Result<std::uint64_t>)> done;
    Result<std::uint64_t> count = std::uint64_t{0};  // not ok: it ends early, because it is not allowed any more
  };
  // A part of the next cancel that can be carried out now, in the turns of the clients that cancel: at most `max`
  // transactions, which is more than 0. A cancel may take several calls, because each also looks at a bounded number of
  // transactions. `is_queued`: AdmissionQueue::holds.
  std::optional<Cancelled> take_cancelled(const std::function<bool(const RequestName&)>& is_queued, std::size_t max);
  std::size_t cancels() const { return cancelling_.size(); }  // that are not carried out, or not completely
  struct List {
    std::vector<ParkedTransaction> parked;
    bool has_more = false;  // it ended before the last parked transaction
  };
  // At most `limit` parked transactions with ids above `after_id`, in order of id. Fewer if they are large, but at
  // least one. Requires: limit > 0.
  List list(std::uint64_t after_id, std::uint32_t limit);

  // How many transactions of a request are parked here.
  std::uint64_t parked_of(const RequestName& name) const { return lot_.count_of_request(name); }

  struct Visited {
    std::uint64_t last_id = 0;  // of those that were visited; 0: there was none
    bool has_more = false;
  };
  // Visits the next parked transactions with ids above `after_id`, in order of id: as many as a step may look at.
  // Nothing may be parked, or leave, meanwhile.
  Visited visit(std::uint64_t after_id, const std::function<void(const Parked&)>& visitor) const;

  // The id of the transaction that was parked last.
  std::uint64_t last_id() const { return lot_.last_id(); }

  // Removes these transactions, because their request has failed. Ids that are not parked (any more) are skipped. It
  // ends when no look is left, and takes from `looks_left` what it needs. Returns for how many ids it has done this.
  std::size_t forget(std::span<const std::uint64_t> ids, std::size_t* looks_left);
  // Whether no transaction here will run, or be cancelled, until a batch writes or time passes.
  bool quiet() const { return lot_.awake() == 0 && cancelling_.empty() && !lot_.has_candidates(); }
  // From now on nothing can be parked. What is parked stays until it leaves.
  void close() { closed_ = true; }

  // As of the last batch, cancel or failure.
  std::uint64_t parked() const { return parked_.load(std::memory_order_relaxed); }
  std::uint64_t parked_bytes() const { return parked_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Cancelling {
    CancelTarget target;                      // its indices are sorted
    TimeUs since_us_max = 0;                  // with a filter: the latest stamp that is old enough
    bool begun = false;                       // the range of ids is known
    std::uint64_t after_id = 0, last_id = 0;  // it still looks at ids above the one, up to the other
    std::uint64_t count = 0;                  // how many it has cancelled
    std::function<void(Result<std::uint64_t>)> done;
  };

  struct Chosen {  // for the batch that is being filled
    std::uint64_t arrival = 0, id = 0;
    const Parked* parked = nullptr;
    friend bool operator<(const Chosen& a, const Chosen& b) {
      return a.arrival != b.arrival ? a.arrival < b.arrival : a.id < b.id;
    }
  };

  void begin_hand_out(TimeUs stamp_us, std::size_t max);
  Parked* next_offer();
  bool settle(Parked* parked, Answer answer);
  void begin(Cancelling* cancelling);
  bool next_ids_of(Cancelling* cancelling, std::size_t max, std::vector<std::uint64_t>* ids);
  bool names(const Cancelling& cancelling, const Parked& parked);
  bool passes(const Parked& parked, const Cancelling& cancelling);
  std::string_view guard_key_of(const Parked& parked);
  bool is_over(const Parked& parked) const { return is_over_ && is_over_(parked); }
  void publish();

  const std::function<bool(const Parked&)> is_over_;
  ParkingLot lot_;
  std::vector<Chosen> chosen_;
  std::size_t places_left_ = 0;  // of the batch that is being filled
  bool awake_next_ = false;      // an awake transaction is offered before one that is due
  bool awake_begins_ = false;    // the same, of the first one of the batch
  ClientTurns<Cancelling> cancelling_;
  BatchNumber looked_after_ = 0;  // the batch after which candidates were last checked
  bool closed_ = false;
  std::atomic<std::uint64_t> parked_{0}, parked_bytes_{0};
  engine::TransactionColumns scratch_;  // one unpacked transaction
};

}  // namespace kilokv::server
