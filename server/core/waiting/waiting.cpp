#include "server/core/waiting/waiting.hpp"

#include <algorithm>

#include "engine/txn/kinds.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kLanesToldPerRound = 4096;  // of keys that many clients wait for; about half a millisecond

}  // namespace

Waiting::Waiting(const DatabaseOptions& options, std::function<bool(const Parked&)> is_over)
    : is_over_(std::move(is_over)), lot_(options.parked_max, options.parked_bytes_max) {}

Result<std::uint64_t> Waiting::park(const engine::TransactionColumns& columns, std::size_t t, Parked parked) {
  if (closed_) return draining();
  return lot_.park(columns, t, std::move(parked));
}

void Waiting::end_batch(std::span<const engine::BeforeImage> images) {
  if (!images.empty()) lot_.written(images);
  publish();
}

void Waiting::wake_candidates(const engine::Engine& engine, BatchNumber last, bool idle) {
  if (!lot_.has_candidates()) return;
  if (looked_after_ == last && !idle) return;
  looked_after_ = last;
  lot_.tell_lanes(kLanesToldPerRound);
  for (std::size_t looks = 0; looks < kLooksPerStep;) {
    Parked* const candidate = lot_.next_candidate();
    if (candidate == nullptr) return;
    const bool is_last_try = candidate->deadline_us <= lot_.stamp_us();
    if (candidate->awake || is_last_try || is_over(*candidate)) {  // it runs, or never will
      ++looks;
      continue;
    }
    looks += looks_of(*candidate);
    scratch_.clear();
    engine::unpack_transaction(candidate->packed, &scratch_);
    if (!engine.would_wait(scratch_, 0, lot_.stamp_us())) {
      if (candidate->due_us() > lot_.stamp_us()) lot_.wake(candidate);  // what is due keeps its turn
      continue;
    }
    const TimeUs next_time_us = engine.next_time(scratch_, 0, lot_.stamp_us());
    if (next_time_us != candidate->next_time_us) lot_.set_next_time(candidate, next_time_us);
  }
}

void Waiting::begin_hand_out(TimeUs stamp_us, std::size_t max) {
  lot_.begin_batch(stamp_us);
  chosen_.clear();
  places_left_ = max;
  awake_next_ = awake_begins_ = !awake_begins_;
}

// Null: nobody has anything that may get a place in this batch.
Parked* Waiting::next_offer() {
  for (; places_left_ > 0; --places_left_) {
    Parked* parked = awake_next_ ? lot_.next_awake() : lot_.next_due();
    if (parked == nullptr) parked = awake_next_ ? lot_.next_due() : lot_.next_awake();
    if (parked == nullptr || !is_over(*parked)) return parked;
    static_cast<void>(lot_.take(parked->id));
  }
  return nullptr;
}

// Returns whether there may be places left.
bool Waiting::settle(Parked* parked, Answer answer) {
  if (answer == Answer::full) return false;
  if (answer == Answer::put_off) {
    lot_.put_off(parked);
    return true;
  }
  --places_left_;
  if (answer == Answer::dropped) {
    static_cast<void>(lot_.take(parked->id));
    return true;
  }
  awake_next_ = !parked->awake;
  chosen_.push_back({parked->arrival, parked->id, parked});
  lot_.choose(parked);
  return true;
}

void Waiting::cancel(CancelTarget target, TimeUs now_us, std::function<void(Result<std::uint64_t>)> done) {
  const TimeUs since_us_max = target.filter ? now_us - target.filter->older_than_us : 0;
  std::vector<std::uint32_t>& indices = target.indices;
  if (!std::is_sorted(indices.begin(), indices.end())) std::sort(indices.begin(), indices.end());
  std::shared_ptr<Client> caller = std::move(target.caller);
  cancelling_.push(std::move(caller), {std::move(target), since_us_max, false, 0, lot_.last_id(), 0, std::move(done)});
}

std::optional<Waiting::Cancelled> Waiting::take_cancelled(const std::function<bool(const RequestName&)>& is_queued,
                                                          std::size_t max) {
  auto taken = cancelling_.take([&](const Cancelling& waits) {
    return waits.begun || !waits.target.session || !is_queued({*waits.target.session, waits.target.request});
  });
  if (!taken) return std::nullopt;
  Cancelling& cancelling = taken->item;
  Status allowed = cancelling.target.allowed ? cancelling.target.allowed() : Status();
  if (!allowed.ok()) {
    if (cancelling.count == 0) allowed = allowed.as_not_run();
    return Cancelled{{}, std::move(cancelling.done), std::move(allowed)};
  }
  if (!cancelling.begun) begin(&cancelling);
  std::vector<std::uint64_t> ids;
  const bool is_last = next_ids_of(&cancelling, max, &ids);
  Cancelled cancelled;
  for (const std::uint64_t id : ids) cancelled.parked.push_back(lot_.take(id));
  cancelled.count = cancelling.count += cancelled.parked.size();
  if (is_last) {
    cancelled.done = std::move(cancelling.done);
  } else {
    cancelling_.push(std::move(taken->client), std::move(cancelling));
  }
  publish();
  return cancelled;
}

// Finds between which ids the cancel has to look. A filter looks at everything that was parked when the cancel came.
void Waiting::begin(Cancelling* cancelling) {
  cancelling->begun = true;
  const CancelTarget& target = cancelling->target;
  if (target.filter) return;
  ParkingLot::IdRange ids{target.parked_id, target.parked_id};
  if (target.parked_id == 0) {
    const std::optional<ParkingLot::IdRange> of_request =
        target.session ? lot_.ids_of_request({*target.session, target.request}) : std::nullopt;
    ids = of_request.value_or(ParkingLot::IdRange{1, 0});
  }
  cancelling->after_id = ids.first - 1;
  cancelling->last_id = ids.last;
}

// Appends the next ids that the cancel names, at most `max`. Returns whether these are the last ones.
bool Waiting::next_ids_of(Cancelling* cancelling, std::size_t max, std::vector<std::uint64_t>* ids) {
  const ParkingLot::Page page = lot_.list(cancelling->after_id, kLooksPerStep, cancelling->last_id);
  for (const Parked* parked : page.parked) {
    if (ids->size() == max) return false;
    cancelling->after_id = parked->id;
    if (names(*cancelling, *parked) && !is_over(*parked)) ids->push_back(parked->id);
  }
  return !page.has_more;
}

// Requires: the id is one of those between which the cancel looks.
bool Waiting::names(const Cancelling& cancelling, const Parked& parked) {
  const CancelTarget& target = cancelling.target;
  if (target.filter) return passes(parked, cancelling);
  if (target.parked_id != 0) return true;
  if (parked.session != target.session || parked.request != target.request) return false;
  return target.indices.empty() || std::binary_search(target.indices.begin(), target.indices.end(), parked.index);
}

bool Waiting::passes(const Parked& parked, const Cancelling& cancelling) {
  const ParkedFilter& filter = *cancelling.target.filter;
  if (!filter.client.empty() && (parked.client == nullptr || parked.client->name != filter.client)) return false;
  if (parked.since_us > cancelling.since_us_max) return false;
  return filter.key_prefix.empty() || guard_key_of(parked).starts_with(filter.key_prefix);
}

// The key of the deciding guard; empty for a guard without one. Valid until the next call.
std::string_view Waiting::guard_key_of(const Parked& parked) {
  scratch_.clear();
  engine::unpack_transaction(parked.packed, &scratch_);
  if (uses_range(static_cast<engine::GuardKind>(scratch_.guard_kind[parked.guard]))) return {};
  return scratch_.key_of_guard(parked.guard);
}

Waiting::List Waiting::list(std::uint64_t after_id, std::uint32_t limit) {
  const ParkingLot::Page page = lot_.list(after_id, limit);
  List list;
  list.has_more = page.has_more;
  for (const Parked* parked : page.parked) {
    ParkedTransaction out;
    out.id = parked->id;
    out.session = parked->session;
    out.request = parked->request;
    out.index = parked->index;
    out.guard = parked->guard;
    out.guard_key = guard_key_of(*parked);
    out.since_us = parked->since_us;
    if (parked->client != nullptr) out.client = parked->client->name;
    out.admitted_batch = parked->admitted_batch;
    out.deadline_us = parked->deadline_us;
    list.parked.push_back(std::move(out));
  }
  return list;
}

Waiting::Visited Waiting::visit(std::uint64_t after_id, const std::function<void(const Parked&)>& visitor) const {
  const ParkingLot::Page page = lot_.list(after_id, kLooksPerStep);
  for (const Parked* parked : page.parked) visitor(*parked);
  return {page.parked.empty() ? 0 : page.parked.back()->id, page.has_more};
}

std::size_t Waiting::forget(std::span<const std::uint64_t> ids, std::size_t* looks_left) {
  std::size_t done = 0;
  for (; done < ids.size() && *looks_left > 0; ++done) {
    const Parked* const parked = lot_.find(ids[done]);
    *looks_left -= std::min(*looks_left, parked == nullptr ? 1 : looks_of(*parked));
    if (parked != nullptr) static_cast<void>(lot_.take(ids[done]));
  }
  publish();
  return done;
}

void Waiting::publish() {
  parked_.store(lot_.size(), std::memory_order_relaxed);
  parked_bytes_.store(lot_.memory_bytes(), std::memory_order_relaxed);
}

}  // namespace kilokv::server
