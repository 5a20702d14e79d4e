// Role: see stream_driver.hpp.
#include "client/bench/stream_driver.hpp"

#include <algorithm>
#include <utility>

#include "client/measure/clock.hpp"

namespace kilokv::bench {

StreamDriver::StreamDriver(const RunOptions& options, engine::Workload workload, const Window& window,
                           std::uint32_t place, client::Session* session, HistoryLog* history)
    : Driver(options, std::move(workload), window, place, options.connections),
      session_(session),
      session_id_(session->id()),
      history_(history) {
  for (std::uint32_t i = 0; i < options.in_flight; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    free_.push_back(slots_.back().get());
  }
}

void StreamDriver::run() {
  while (Slot* slot = next_slot()) send(slot);
  send_rest();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return free_.size() == slots_.size(); });
  lock.unlock();
  count_not_sent();
}

void StreamDriver::wake() {
  const std::lock_guard lock(mutex_);  // otherwise it could come between the check at the end and the sleep
  changed_.notify_all();
}

void StreamDriver::wait_for_slot(std::unique_lock<std::mutex>* lock) {
  if (!free_.empty()) return;
  const std::int64_t begin_us = pacer_ ? std::max(steady_now_us(), pacer_->due_us()) : 0;
  changed_.wait_until(*lock, at_steady_us(end_us()),
                      [this] { return stopped_ || steady_now_us() >= end_us() || !free_.empty(); });
  if (!pacer_) return;
  // A slot may have become free long before this thread runs again. That time is not the server's.
  const std::int64_t free_us = free_.empty() ? end_us() : freed_us_;
  count_full(std::max<std::int64_t>(0, free_us - begin_us));
}

StreamDriver::Slot* StreamDriver::next_slot() {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return stopped_ || steady_now_us() >= end_us(); };
  wait_for_slot(&lock);
  if (is_over() || free_.empty()) return nullptr;
  std::int64_t start_us = steady_now_us();
  if (pacer_) {
    if (pacer_->due_us() >= end_us()) return nullptr;
    changed_.wait_until(lock, at_steady_us(pacer_->due_us()), is_over);
    if (is_over()) return nullptr;
    start_us = pacer_->take();
  }
  if (start_us >= end_us()) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  slot->start_us = start_us;
  return slot;
}

void StreamDriver::send(Slot* slot) {
  slot->batch.clear();
  generate(&slot->batch);
  submit(slot);
}

// Sends what is still waited for. Otherwise withdrawals at the end of a run would wait for deposits that no driver
// sends any more.
void StreamDriver::send_rest() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || !free_.empty(); });
  if (stopped_) return;
  Slot* slot = free_.back();
  slot->batch.clear();
  generate_rest(&slot->batch);
  if (slot->batch.empty()) return;
  free_.pop_back();
  slot->start_us = steady_now_us();
  lock.unlock();
  submit(slot);
}

void StreamDriver::submit(Slot* slot) {
  slot->answered = 0;
  const client::CallOptions call{.timeout_us = static_cast<std::uint64_t>(options_.give_up_after_us),
                                 .encoding = options_.encoding};
  session_->execute_async(
      slot->batch, [this, slot](const client::Progress& progress) { on_progress(slot, progress); }, call);
}

void StreamDriver::on_progress(Slot* slot, const client::Progress& progress) {
  Counts counts;
  for (const std::uint32_t index : progress.indices) {
    ++counts.outcomes[static_cast<std::size_t>(progress.results.outcome(index))];
  }
  slot->answered += progress.indices.size();
  if (progress.done) {
    counts.requests = 1;
    counts.retries = progress.attempts > 1 ? progress.attempts - 1 : 0;
    counts.sent = progress.attempts != 0 ? slot->batch.size() : 0;
    counts.refusals = progress.refusals;
  }
  count(counts, slot->start_us);
  if (history_ != nullptr) history_->add(session_id_, slot->batch, progress);
  if (!progress.done) return;
  const bool go_on = !progress.error || count_failure(progress.error, slot->batch.size() - slot->answered);
  const std::lock_guard lock(mutex_);
  if (!go_on) stopped_ = true;
  if (free_.empty()) freed_us_ = steady_now_us();
  free_.push_back(slot);
  changed_.notify_one();
}

}  // namespace kilokv::bench
