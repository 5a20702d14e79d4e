#include "server/storage/log_history.hpp"

namespace kilokv::server::storage {

void LogHistory::restore(const LogSegment& segment) {
  const std::lock_guard lock(mutex_);
  if (since_us_ == 0) since_us_ = segment.last_time_us;  // when it began is not known
  closed_.push_back(segment);
  bytes_ += segment.bytes;
}

std::optional<LogSegment> LogHistory::add(BatchNumber batch, TimeUs time_us, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (since_us_ == 0) since_us_ = time_us;
  if (open_.first_batch == 0) open_.first_batch = batch;
  open_.last_batch = batch;
  open_.last_time_us = time_us;
  open_.bytes += bytes;
  bytes_ += bytes;
  if (open_.bytes < segment_bytes_) return std::nullopt;
  closed_.push_back(open_);
  open_ = {};
  return closed_.back();
}

std::vector<LogSegment> LogHistory::trim(BatchNumber before, TimeUs oldest_us, std::uint64_t bytes_max) {
  const std::lock_guard lock(mutex_);
  std::vector<LogSegment> dropped;
  while (!closed_.empty() && closed_.front().last_batch < before &&
         (closed_.front().last_time_us < oldest_us || bytes_ > bytes_max)) {
    bytes_ -= closed_.front().bytes;
    since_us_ = closed_.front().last_time_us;
    dropped.push_back(closed_.front());
    closed_.pop_front();
  }
  return dropped;
}

std::uint64_t LogHistory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t LogHistory::bytes_from(BatchNumber batch) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = open_.last_batch >= batch ? open_.bytes : 0;
  for (auto segment = closed_.rbegin(); segment != closed_.rend() && segment->last_batch >= batch; ++segment) {
    bytes += segment->bytes;
  }
  return bytes;
}

BatchNumber LogHistory::first_batch() const {
  const std::lock_guard lock(mutex_);
  return closed_.empty() ? open_.first_batch : closed_.front().first_batch;
}

TimeUs LogHistory::since_us() const {
  const std::lock_guard lock(mutex_);
  return since_us_;
}

}  // namespace kilokv::server::storage
