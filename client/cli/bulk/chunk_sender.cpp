// Role: see chunk_sender.hpp.
#include "client/cli/bulk/chunk_sender.hpp"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/cli/output.hpp"

namespace kilokv::client {
namespace {

bool have_common(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    if (*x == *y) return true;
    *x < *y ? ++x : ++y;
  }
  return false;
}

std::vector<std::uint64_t> sorted_hashes(const Chunk& chunk) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(chunk.entries().size());
  for (const Chunk::Entry& entry : chunk.entries()) {
    const std::string_view key = chunk.key_of(entry);
    hashes.push_back(XXH3_64bits(key.data(), key.size()));
  }
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

// What the server does not take of a record.
std::string problem_of(const Error& error) {
  if (error.limit.empty() || error.actual.empty()) return "the server refused it: " + error.message;
  const bool is_key = error.field.ends_with(".key");
  return std::string("the ") + (is_key ? "key" : "value") + " has " + error.actual + ", and the server takes " +
         error.limit + (error.setting.empty() ? "" : " (" + error.setting + " of kilokvd)");
}

// Whether the server has refused a transaction because it may wait: it lets none wait so long, or too many wait
// already.
bool forbids_waiting(const Error& error) {
  return never_ran(error) && (error.setting == "--wait-timeout-max" || error.reason == "PARKED_FULL");
}

// Why a transaction had an outcome that it has only if somebody else interferes.
Error interference(Outcome outcome, const std::string& position_key) {
  Error error;
  error.not_run = true;
  if (outcome == Outcome::cancelled) {
    error.code = ErrorCode::cancelled;
    error.message = "somebody has cancelled a transaction of the import on the server";
  } else {
    error.code = ErrorCode::failed_precondition;
    error.message = "the position key " + key_text(position_key) +
                    " was changed by another program, maybe by another import with this key";
  }
  return error;
}

}  // namespace

ChunkSender::ChunkSender(std::unique_ptr<Session> session, ChunkRules rules, std::uint32_t in_flight_max,
                         CallOptions call, Callbacks callbacks)
    : session_(std::move(session)),
      rules_(std::move(rules)),
      in_flight_max_(in_flight_max),
      call_(std::move(call)),
      callbacks_(std::move(callbacks)) {}

ChunkSender::~ChunkSender() { drain(); }

bool ChunkSender::send(std::unique_ptr<Chunk> chunk) {
  auto open = std::make_unique<Open>();
  open->chunk = std::move(chunk);
  if (!has_position()) open->keys = sorted_hashes(*open->chunk);
  while (!stops() && (open_.size() >= in_flight_max_ || meets_open_keys(open->keys))) handle(wait_for_event());
  if (stops()) return false;
  open->number = next_number_++;
  open_.push_back(std::move(open));
  transmit(open_.back().get());
  return look();
}

bool ChunkSender::look() {
  while (!stops()) {
    const auto event = take_event();
    if (!event) break;
    handle(*event);
  }
  return !stops();
}

void ChunkSender::finish() {
  while (!open_.empty() && !has_failed_ && !is_after_cut(open_.front().get())) handle(wait_for_event());
  drain();
}

bool ChunkSender::meets_open_keys(const std::vector<std::uint64_t>& keys) const {
  return std::any_of(open_.begin(), open_.end(),
                     [&](const auto& open) { return !open->has_ended && have_common(open->keys, keys); });
}

void ChunkSender::transmit(Open* open) {
  if (has_position() && !may_wait_ && !is_first(open)) return hold(open);
  if (!callbacks_.before_sending()) return fail(open, {});
  batch_.clear();
  open->sent_as_first = is_first(open);
  if (!open->chunk->append_transaction(rules_, !open->sent_as_first, &batch_)) return end(open, true);
  session_->execute_async(
      batch_, [this, open](const Progress& progress) { note(open, false, progress); }, call_);
}

// Keeps the chunk until it is the first: then the transaction before it has run, and it need not wait on the server.
void ChunkSender::hold(Open* open) {
  open->is_held = true;
  if (is_first(open)) release(open);
}

void ChunkSender::release(Open* open) {
  open->is_held = false;
  transmit(open);
}

void ChunkSender::probe(Open* open) {
  batch_.clear();
  open->chunk->append_probes(&batch_);
  session_->execute_async(
      batch_, [this, open](const Progress& progress) { note(open, true, progress); }, call_);
}

// Runs on a thread of the session.
void ChunkSender::note(Open* open, bool is_probe, const Progress& progress) {
  if (!progress.done) return;
  Event event;
  event.open = open;
  event.is_probe = is_probe;
  event.error = progress.error;
  if (!progress.error && is_probe) {
    for (std::size_t i = 0; i < progress.results.size(); ++i) {
      event.exists.push_back(progress.results.outcome(i) == Outcome::committed);
    }
  } else if (!progress.error) {
    event.outcome = progress.results.outcome(0);
  }
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_one();
}

std::optional<ChunkSender::Event> ChunkSender::take_event() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

ChunkSender::Event ChunkSender::wait_for_event() {
  constexpr auto kTurn = std::chrono::milliseconds(200);
  while (true) {
    if (auto event = take_event()) return std::move(*event);
    callbacks_.while_waiting();
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTurn, [this] { return !events_.empty(); });
  }
}

void ChunkSender::handle(const Event& event) {
  const bool is_done = !event.error && !event.is_probe && event.outcome == Outcome::committed;
  if (is_done) return end(event.open, true);
  if (has_failed_ || is_after_cut(event.open)) return end(event.open, false);
  if (event.error) return on_error(event.open, event.error);
  event.is_probe ? on_probe(event.open, event.exists) : on_outcome(event.open, event.outcome);
}

void ChunkSender::on_outcome(Open* open, Outcome outcome) {
  if (outcome == Outcome::guard_failed) return probe(open);
  // The position has not come in time: chunks before this one are late, or another program has written it.
  if (outcome == Outcome::wait_expired && !open->sent_as_first) return hold(open);
  fail(open, interference(outcome, rules_.position_key));
}

void ChunkSender::on_probe(Open* open, const std::vector<bool>& exists) {
  const std::vector<std::size_t> written = open->chunk->written();
  for (std::size_t i = 0; i < written.size() && i < exists.size(); ++i) {
    if (!exists[i]) continue;
    if (rules_.existing == Existing::keep) {
      open->chunk->entries()[written[i]].use = Chunk::Use::keep_existing;
    } else if (!leave_out(open, written[i], "the key exists already")) {
      break;
    }
  }
  transmit(open);
}

void ChunkSender::on_error(Open* open, const Error& error) {
  if (has_position() && !open->sent_as_first && forbids_waiting(error)) {
    may_wait_ = false;
    return hold(open);
  }
  if (error.code != ErrorCode::invalid_argument || !never_ran(error)) return fail(open, error);
  std::optional<std::size_t> entry = open->chunk->entry_of(rules_, error);
  // A record that is too large for a message is alone in its chunk.
  const std::vector<std::size_t> written = open->chunk->written();
  if (!entry && error.setting == "--message-bytes-max" && written.size() == 1) entry = written.front();
  if (!entry) return fail(open, error);
  leave_out(open, *entry, problem_of(error));
  transmit(open);
}

// Returns false if the import stops before this record. Then the chunk ends before it.
bool ChunkSender::leave_out(Open* open, std::size_t entry, const std::string& problem) {
  Chunk::Entry& left = open->chunk->entries()[entry];
  if (callbacks_.leave_out(left.line, problem, open->chunk->text_of(left))) {
    left.use = Chunk::Use::leave_out;
    return true;
  }
  cut_ = std::min(cut_.value_or(open->number), open->number);
  open->chunk->cut(left.line, left.text_begin);
  return false;
}

void ChunkSender::end(Open* open, bool is_done) {
  open->has_ended = true;
  open->is_done = is_done;
  if (is_done) {
    const Chunk& chunk = *open->chunk;
    totals_.written += chunk.count(Chunk::Use::write);
    totals_.integers += chunk.integers();
    totals_.kept += chunk.count(Chunk::Use::keep_existing);
    totals_.left_out += chunk.count(Chunk::Use::leave_out);
    totals_.line_max = std::max(totals_.line_max, chunk.next_line());
  }
  while (!open_.empty() && open_.front()->has_ended) {
    const Open& first = *open_.front();
    is_in_order_ = is_in_order_ && first.is_done;
    if (is_in_order_) totals_.line = first.chunk->next_line();
    if (cut_ && first.number >= *cut_) is_in_order_ = false;
    open_.pop_front();
  }
  if (open_.empty() || has_failed_) return;
  Open* first = open_.front().get();
  if (first->is_held && !is_after_cut(first)) release(first);
}

void ChunkSender::fail(Open* open, const Error& error) {
  if (!has_failed_) error_ = error;
  has_failed_ = true;
  if (error && !never_ran(error)) totals_.unknown += open->chunk->count(Chunk::Use::write);
  end(open, false);
}

// The end of the session ends all that is on its way.
void ChunkSender::drain() {
  has_failed_ = true;  // nothing is sent any more
  session_.reset();
  while (const auto event = take_event()) {
    const bool is_done = !event->error && !event->is_probe && event->outcome == Outcome::committed;
    const bool may_be_done = event->error && !event->is_probe && !never_ran(event->error);
    if (may_be_done && !is_after_cut(event->open)) totals_.unknown += event->open->chunk->count(Chunk::Use::write);
    end(event->open, is_done);
  }
  open_.clear();
}

}  // namespace kilokv::client
