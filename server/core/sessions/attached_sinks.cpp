#include "server/core/sessions/attached_sinks.hpp"

#include <algorithm>
#include <iterator>

#include "engine/base/check.hpp"

namespace kilokv::server {

bool Replay::show() {
  for (std::size_t i = 0; i < now_.slices.size(); ++i) {
    const StoredBytes bytes = std::move(now_.slices[i]);
    const bool last = now_.complete && i + 1 == now_.slices.size();
    if (!last && sink_->gone()) continue;  // nobody gets it, and the end is still to come
    const Result<StoredSlice> slice = StoredSlice::parse(bytes);
    KILOKV_CHECK(slice.ok());
    sink_->results(*slice, last);
  }
  now_.slices.clear();
  if (now_.failure) sink_->fail(*now_.failure);
  return now_.complete || now_.failure;
}

bool AttachedSinks::go_on(Replay* replay) {
  Replay::Part& next = replay->next_;
  if (next.slices.empty() && !next.failure) {
    std::erase(replays_, replay);
    waiting_.push_back(replay->sink_);
    return false;
  }
  replay->now_ = std::exchange(next, {});
  return true;
}

AttachedSinks::Sinks AttachedSinks::take(const StoredBytes& slice, bool last) {
  for (Replay* replay : replays_) {
    replay->next_.slices.push_back(slice);
    replay->next_.complete = last;
  }
  if (last) replays_ = {};  // a request that is stored for long keeps no memory for them
  called_ = last ? 0 : waiting_.size();
  return std::exchange(waiting_, {});
}

void AttachedSinks::put_back(Sinks called) {
  called_ = 0;
  waiting_.insert(waiting_.end(), std::make_move_iterator(called.begin()), std::make_move_iterator(called.end()));
}

AttachedSinks::Sinks AttachedSinks::take_failed(const Status& status) {
  for (Replay* replay : std::exchange(replays_, {})) replay->next_.failure = status;
  return std::exchange(waiting_, {});
}

AttachedSinks::Sinks AttachedSinks::take_gone() {
  const auto gone =
      std::stable_partition(waiting_.begin(), waiting_.end(), [](const auto& sink) { return !sink->gone(); });
  Sinks taken(std::make_move_iterator(gone), std::make_move_iterator(waiting_.end()));
  waiting_.erase(gone, waiting_.end());
  return taken;
}

}  // namespace kilokv::server
