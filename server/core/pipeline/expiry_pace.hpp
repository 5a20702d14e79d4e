// How many keys the next batch of expiries deletes. Batches of clients wait for such a batch, so it is bounded in time.
// It may take the longest of these:
// - kBatchUs.
// - As long as the batches of clients took since the last batch of expiries while keys were due. So expiries get half
//   of the executor's time if they need it. To delete a key does not take longer than to write it, so expiries keep up
//   with clients.
// - A quarter of the time since the last batch of expiries, at most kLateBatchUs. So where syncs of the log are slow,
//   expiries still progress. Clients wait for these syncs anyway.
//
// How long a key takes is measured.
//
// Thread safety: the executor's thread alone.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/base/types.hpp"

namespace kilokv::server {

class ExpiryPace {
 public:
  static constexpr DurationUs kBatchUs = 250, kLateBatchUs = 2000;
  static constexpr std::size_t kKeysMin = 64;  // a batch of 64 keys costs little more than an empty one

  // The keys of a batch that begins now. `most`: --expiry-batch-max.
  std::size_t keys(TimeUs now, std::size_t most) const {
    const DurationUs late_us = std::min((now - last_us_) / 4, kLateBatchUs);
    const auto allowed_ns = 1000.0 * static_cast<double>(std::max({kBatchUs, clients_us_, late_us}));
    if (allowed_ns >= ns_per_key_ * static_cast<double>(most)) return most;
    return std::min(most, std::max(kKeysMin, static_cast<std::size_t>(allowed_ns / ns_per_key_)));
  }

  // A batch of clients took this time, while keys were due.
  void note_clients(DurationUs us) { clients_us_ += us; }
  // A batch of expiries ends now, and took this time. Requires: keys > 0.
  void note_expiries(TimeUs now, std::size_t keys, DurationUs us) {
    last_us_ = now;
    clients_us_ = 0;
    const double more = 1000.0 * static_cast<double>(us) / static_cast<double>(keys) - ns_per_key_;
    ns_per_key_ = std::max(1.0, ns_per_key_ + std::min(more, ns_per_key_) / kSmoothing);
  }

 private:
  // Batches. One in which the machine stood still adds an eighth at most: on a busy machine there are many.
  static constexpr double kSmoothing = 8;

  double ns_per_key_ = 2000;
  TimeUs last_us_ = 0;         // the end of the last batch of expiries
  DurationUs clients_us_ = 0;  // of batches of clients since then
};

}  // namespace kilokv::server
