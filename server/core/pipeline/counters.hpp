// Counters since the start.
//
// Thread safety: each has one writer (`refused`: many); any thread may read them.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/engine.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::server {

struct Counters {
  std::atomic<std::uint64_t> batches{0}, transactions{0}, committed{0}, guard_failed{0}, wait_expired{0}, overflow{0},
      type_mismatch{0}, refused{0}, abandoned{0};
  std::atomic<std::uint64_t> expired{0};       // keys that were deleted because they had expired
  std::atomic<TimeUs> next_expiry_us{kNever};  // the least time at which a key expires, after the last batch
  std::atomic<std::uint64_t> batches_serial{0}, batches_parallel{0}, batches_on_device{0}, shadow_batches{0},
      shadow_skipped{0};

  // Counts a batch that ran.
  void add_batch(const engine::ExecutionReport& execution);
  // Counts its outcomes. Returns how many transactions were postponed; those are not counted.
  std::uint64_t add_outcomes(const engine::BatchResults& results);
};

}  // namespace kilokv::server
