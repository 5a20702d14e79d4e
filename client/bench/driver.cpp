// Role: see driver.hpp.
#include "client/bench/driver.hpp"

#include <algorithm>
#include <utility>

#include "client/bench/batch_sink.hpp"
#include "client/measure/clock.hpp"

namespace kilokv::bench {
Driver::Driver(const RunOptions& options, engine::Workload workload, const Window& window, std::uint32_t place,
               std::uint32_t drivers)
    : options_(options),
      window_(window),
      end_us_(window.end_us),
      workload_(std::move(workload)),
      last_answer_us_(window.begin_us) {
  if (options_.rate_per_s <= 0) return;
  const double requests_per_s = options_.rate_per_s / options_.batch_size / drivers;
  const double offset_us = 1e6 / requests_per_s * place / drivers;  // the drivers send in turns
  pacer_.emplace(window_.start_us + static_cast<std::int64_t>(offset_us), requests_per_s);
}

void Driver::end_at(std::int64_t end_us) {
  if (end_us >= end_us_.load()) return;
  end_us_.store(end_us);
  wake();
}

Tally Driver::measured() const {
  const std::lock_guard lock(mutex_);
  Tally measured = measured_;
  const std::int64_t until_us = std::min(steady_now_us(), end_us());
  measured.longest_gap_us = std::max(measured.longest_gap_us, until_us - last_answer_us_);
  return measured;
}

Counts Driver::whole() const {
  const std::lock_guard lock(mutex_);
  return whole_;
}

Tally Driver::take_interval() {
  Tally fresh;
  const std::lock_guard lock(mutex_);
  std::swap(fresh, interval_);
  return fresh;
}

std::string Driver::first_error() const {
  const std::lock_guard lock(mutex_);
  return first_error_;
}

void Driver::generate(client::Batch* batch) {
  BatchSink sink(batch);
  workload_.generate(&sink, options_.batch_size);
}

void Driver::generate_rest(client::Batch* batch) {
  BatchSink sink(batch);
  workload_.close(&sink);
}

void Driver::count(const Counts& counts, std::int64_t start_us) {
  const std::int64_t now_us = steady_now_us();
  const std::uint64_t answered = counts.answered();
  const std::lock_guard lock(mutex_);
  whole_.merge(counts);
  interval_.counts.merge(counts);
  interval_.latency_us.record(now_us - start_us, answered);
  if (measures(now_us)) {
    measured_.counts.merge(counts);
    measured_.longest_gap_us = std::max(measured_.longest_gap_us, now_us - last_answer_us_);
    last_answer_us_ = now_us;
  }
  // Decided by the start, not by the answer: a stalled server answers the slowest requests after the end.
  if (measures(start_us)) measured_.latency_us.record(now_us - start_us, answered);
}

bool Driver::count_failure(const client::Error& error, std::uint64_t missing) {
  const std::lock_guard lock(mutex_);
  std::uint64_t Counts::*const field = client::never_ran(error) ? &Counts::errors : &Counts::unknown;
  whole_.*field += missing;
  if (first_error_.empty()) first_error_ = std::string(client::to_string(error.code)) + ": " + error.message;
  // A full server refuses, and a call without a session loses its answer in a restart. Both errors pass.
  return error.code == client::ErrorCode::resource_exhausted ||
         (options_.unary && error.code == client::ErrorCode::unavailable);
}

void Driver::count_full(std::int64_t microseconds) {
  const std::lock_guard lock(mutex_);
  whole_.full_us += microseconds;
}

void Driver::count_not_sent() {
  if (!pacer_) return;
  const std::int64_t now_us = steady_now_us();
  const std::lock_guard lock(mutex_);
  while (pacer_->due_us() < end_us()) {
    const std::int64_t due_us = pacer_->take();
    whole_.not_sent += options_.batch_size;
    if (measures(due_us)) measured_.latency_us.record(now_us - due_us, options_.batch_size);
  }
  whole_.due = pacer_->taken() * options_.batch_size;
}

}  // namespace kilokv::bench
