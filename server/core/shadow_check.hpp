// The running server's own check (--shadow-rate): of a random sample of the batches, the part of the state that the
// batch names is copied before it runs, the referee (engine/referee) replays it on the copy, and everything that the
// engine reported and left in its table must be the same. It guards against a strategy or a device that computes
// wrongly: the executor stops the server on a difference, before the batch is logged or answered.
//
// A batch that is not in the sample costs one random number. One that is: the records of all its keys and ranges (a
// range without an end is the rest of the table), twice in memory, and a replay one by one.
//
// Thread safety: the executor's thread alone. A batch that the engine refuses needs no after().
#pragma once

#include <span>
#include <string>

#include "engine/engine.hpp"
#include "engine/referee/referee.hpp"
#include "server/core/environment.hpp"

namespace kilokv::server {

class ShadowCheck {
 public:
  // `share` of the batches are in the sample, 0 to 1. At 0 no random number is drawn.
  ShadowCheck(double share, Random* random) : share_(share), random_(random) {}

  // Before the batch runs: decides whether it is in the sample; if it is, copies what it needs.
  void before(const engine::Engine& engine, const engine::TransactionColumns& columns);
  bool sampled() const { return sampled_; }
  // After it has run: INTERNAL naming the first difference. Requires: sampled().
  [[nodiscard]] Status after(const engine::Engine& engine, const engine::Execution& execution) const;
  // The last batch of the sample with the state before it, to be run again elsewhere (core/batch_text.hpp).
  std::string text_of(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                      std::span<const std::uint8_t> last_try) const;

 private:
  bool draw();
  void copy_keys(const engine::Engine& engine, const engine::TransactionColumns& columns);
  void copy_ranges(const engine::Engine& engine, const engine::TransactionColumns& columns);

  const double share_;
  Random* const random_;
  bool sampled_ = false;
  engine::ModelState state_;  // before the batch, as far as it names it
};

}  // namespace kilokv::server
