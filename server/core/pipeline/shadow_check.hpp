// The running server's own check (--shadow-rate): of a random sample of the batches, the part of the state that the
// batch names is copied before it runs, the referee (engine/referee) replays it on the copy, and everything that the
// engine reported and left in its table must be the same. It guards against a strategy or a device that computes
// wrongly: the executor stops the server on a difference, before the batch is logged or answered.
//
// A batch that is not in the sample costs one random number. One that is: the records of all its keys and ranges (a
// range without an end is the rest of the table), twice in memory until it is checked, and a replay one by one. A batch
// that needs more than ShadowLimits is left out: a client must not be able to stop all others with one small range.
//
// Thread safety: the executor's thread alone. A batch that the engine refuses needs no after().
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/engine.hpp"
#include "engine/referee/referee.hpp"
#include "server/core/environment.hpp"

namespace kilokv::server {

// Of one batch. Counted as often as the batch names it, since that is how often the replay may look at it: each key,
// and each record that is in a range, or that the batch itself may put there.
struct ShadowLimits {
  std::uint64_t records_max = 0;
  std::uint64_t bytes_max = 0;  // of their keys and values
};

class ShadowCheck {
 public:
  // `share` of the batches are in the sample, 0 to 1. At 0 no random number is drawn.
  ShadowCheck(double share, ShadowLimits limits, Random* random) : share_(share), limits_(limits), random_(random) {}

  // Before the batch runs: decides whether it is in the sample; if it is, copies what it needs.
  void before(const engine::Engine& engine, const engine::TransactionColumns& columns);
  bool sampled() const { return sampled_; }  // and within the limits
  bool skipped() const { return skipped_; }  // in the sample, but beyond the limits
  // After it has run: INTERNAL naming the first difference. Where there is none, the copy is given back.
  // Requires: sampled().
  [[nodiscard]] Status after(const engine::Engine& engine, const engine::Execution& execution);
  // The batch that after() found wrong with the state before it, to be run again elsewhere
  // (core/pipeline/batch_text.hpp).
  std::string text_of(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                      std::span<const std::uint8_t> expires) const;

 private:
  bool draw();
  // False: beyond the limits.
  bool take(std::uint64_t records, std::uint64_t bytes);
  bool ranges_fit(const engine::Engine& engine, const engine::TransactionColumns& columns);
  bool copy_keys(const engine::Engine& engine, const engine::TransactionColumns& columns);
  void copy_ranges(const engine::Engine& engine, const engine::TransactionColumns& columns);
  Status compare(const engine::Engine& engine, const engine::Execution& execution) const;

  const double share_;
  const ShadowLimits limits_;
  Random* const random_;
  bool sampled_ = false, skipped_ = false;
  std::uint64_t records_ = 0, bytes_ = 0;  // taken for the batch at hand
  engine::ModelState state_;               // before the batch, as far as it names it
};

}  // namespace kilokv::server
