// The running server's check of itself (--shadow-rate), on a random sample of the batches. Before such a batch runs,
// the part of the state that it names is copied. Then the referee (engine/referee) replays the batch on the copy.
// Everything that the engine reported and left in its table must be the same. The check guards against a strategy or a
// device that computes wrongly: if there is a difference, the executor stops the server before the batch is logged or
// answered.
//
// A batch outside the sample costs one random number. A batch in the sample costs the records of all its keys and
// ranges, twice in memory until it is checked, and a serial replay. (A range without an end is the rest of the table.)
// A batch that needs more than ShadowLimits is left out, because a client must not be able to stop all others with one
// small range.
//
// Thread safety: only the executor's thread. If the engine refuses the batch, after() is not needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/engine.hpp"
#include "engine/referee/referee.hpp"
#include "server/core/environment.hpp"

namespace kilokv::server {

// The limits for one batch. Each key counts, and each record that is in a range or that the batch may put there. They
// count as often as the batch names them, because the replay may read them that often.
struct ShadowLimits {
  std::uint64_t records_max = 0;
  std::uint64_t bytes_max = 0;  // of their keys and values
};

class ShadowCheck {
 public:
  // `share`: the part of the batches that is in the sample, 0 to 1. With 0, no random number is drawn.
  ShadowCheck(double share, ShadowLimits limits, Random* random) : share_(share), limits_(limits), random_(random) {}

  // Called before the batch runs: decides whether it is in the sample. If it is, copies what the check needs.
  void before(const engine::Engine& engine, const engine::TransactionColumns& columns);
  bool sampled() const { return sampled_; }  // in the sample, and within the limits
  bool skipped() const { return skipped_; }  // in the sample, but beyond the limits
  // Called after the batch has run. Errors: INTERNAL, which names the first difference. If there is none, the copy is
  // freed. Requires: sampled().
  [[nodiscard]] Status after(const engine::Engine& engine, const engine::Execution& execution);
  // The batch that after() found wrong, with the state before it, as text. With it the batch can be run again elsewhere
  // (core/pipeline/batch_text.hpp).
  std::string text_of(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                      std::span<const std::uint8_t> expires) const;

 private:
  bool draw();
  // Counts what the copy needs. False: beyond the limits.
  bool take(std::uint64_t records, std::uint64_t bytes);
  bool ranges_fit(const engine::Engine& engine, const engine::TransactionColumns& columns);
  bool copy_keys(const engine::Engine& engine, const engine::TransactionColumns& columns);
  void copy_ranges(const engine::Engine& engine, const engine::TransactionColumns& columns);
  Status compare(const engine::Engine& engine, const engine::Execution& execution) const;

  const double share_;
  const ShadowLimits limits_;
  Random* const random_;
  bool sampled_ = false, skipped_ = false;
  std::uint64_t records_ = 0, bytes_ = 0;  // taken for the current batch
  engine::ModelState state_;               // before the batch; only what the batch names
};

}  // namespace kilokv::server
