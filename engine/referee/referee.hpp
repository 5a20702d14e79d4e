// The referee: one function that checks any execution of a batch. Given the state before it, the batch and everything
// that the strategy reported, it replays the batch serially on a model (model.hpp) and compares every field.
//
// Used by the unit tests, the simulator, the benches' --verify, the check on the GPU, and the running server on a
// sample of its batches. It trusts nothing that it is given but the columns, which must be valid. Thread safety: the
// state belongs to the caller; else stateless. Source: docs/transactions.md, section 7 (the specification of a batch).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/exec/run/execution_report.hpp"
#include "engine/referee/model.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class Engine;

enum class RefereeMode : std::uint8_t {
  // The specification itself: order by (precedence, arrival), the same passes, ranks and versions, bit for bit.
  deterministic,
  // Any serial order: the reported ranks are replayed. Beyond that, ranks are unique and in range, and each pass
  // finishes
  // one precedence class before the next. What is left postponed is decided by a false WAIT guard in the final state;
  // where the limit of passes cut the batch off, in a state of the last pass.
  any_order,
  // The same for a strategy that has wasted ranks. A pass of it may take the ranks of several, so that nobody can tell
  // where the last one began: what the limit of passes cut off is held to any state of the batch.
  any_order_with_waste,
};

// What an execution is held to.
inline RefereeMode referee_mode(const ExecutionReport& report) {
  if (!report.any_order) return RefereeMode::deterministic;
  return report.counter("wasted_tickets") == 0 ? RefereeMode::any_order : RefereeMode::any_order_with_waste;
}

// One execution, by reference: what Engine::execute was given and what it filled in.
struct Execution {
  const BatchHeader& header;
  const TransactionColumns& columns;
  std::span<const std::uint8_t> expires;
  const BatchResults& results;
  const WriteColumns& writes;
  std::function<std::string_view(Cell)> bytes_of;  // of a value of type bytes, as Engine::bytes_of
};

// Compares outcomes, what failed, guard values, reads, ranges, ranks, versions, writes, passes and next_version.
// What results.hpp leaves unspecified is not compared. On success `state` is the state after the batch, so that batches
// can be chained; on failure it is somewhere between.
// Errors: INTERNAL naming batch, transaction, field, expected and got: the first difference in serial order.
[[nodiscard]] Status check_execution(const Execution& execution, RefereeMode mode, ModelState* state);

// Compares every record of the engine with the model, tombstones included, and the kept state hash with the computed
// one. Errors: INTERNAL naming the first difference.
[[nodiscard]] Status check_state(const ModelState& state, const Engine& engine);
// The same for the keys of a batch alone, where `state` has no others: its cost is that of the batch.
[[nodiscard]] Status check_keys(const ModelState& state, const Engine& engine, const TransactionColumns& columns);

}  // namespace kilokv::engine
