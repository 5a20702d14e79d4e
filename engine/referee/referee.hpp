// The referee: one function that checks any execution of a batch. It gets the state before the batch, the batch, and
// everything that the strategy reported. It replays the batch serially on a model (model.hpp), and compares every
// field.
//
// The unit tests, the simulator, the benches' --verify, the check on the GPU and the running server (on a sample of its
// batches) use it. It trusts only the columns, which must be valid. Thread safety: stateless, but for the state, which
// belongs to the caller. Source: docs/transactions.md, section 7 (the specification of a batch).
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
  // The specification itself: order by (precedence, arrival), and the same passes, ranks and versions, bit for bit.
  deterministic,
  // Any serial order: the referee replays the reported ranks. It also checks that ranks are unique and in range, and
  // that each pass finishes one precedence class before the next. A transaction that is left postponed must have a WAIT
  // guard that is false in the final state. If the limit of passes cut the batch off, the guard must be false in some
  // state of the last pass. A batch that may have a pass of last tries must have the order of the specification.
  any_order,
  // As any_order, for a strategy that has wasted ranks. One of its passes may take the ranks of several, so the ranks
  // do not show where the last pass began. What the limit of passes cut off must then have a false guard in some state
  // of the batch.
  any_order_with_waste,
};

// The mode in which an execution is checked.
inline RefereeMode referee_mode(const ExecutionReport& report) {
  if (!report.any_order) return RefereeMode::deterministic;
  return report.counter("wasted_tickets") == 0 ? RefereeMode::any_order : RefereeMode::any_order_with_waste;
}

// One execution, by reference: the arguments of Engine::execute, and what it filled in.
struct Execution {
  const BatchHeader& header;
  const TransactionColumns& columns;
  std::span<const std::uint8_t> expires;
  const BatchResults& results;
  const WriteColumns& writes;
  std::function<std::string_view(Cell)> bytes_of;  // the bytes of a cell of type bytes, as Engine::bytes_of
};

// Compares outcomes, failures, guard values, reads, ranges, ranks, versions, writes, passes and next_version. It does
// not compare what results.hpp leaves unspecified. On success, `state` is the state after the batch, so that checks can
// be chained. On failure, `state` has only a part of the batch's writes. Errors: INTERNAL, which names batch,
// transaction, field, expected and got for the first difference in serial order.
[[nodiscard]] Status check_execution(const Execution& execution, RefereeMode mode, ModelState* state);

// Compares every record of the engine with the model, with tombstones. Also compares the kept state hash with the
// computed one. Errors: INTERNAL, which names the first difference.
[[nodiscard]] Status check_state(const ModelState& state, const Engine& engine);
// As check_state, but for the keys of one batch only, if `state` has no others. It costs as much as the batch.
[[nodiscard]] Status check_keys(const ModelState& state, const Engine& engine, const TransactionColumns& columns);

}  // namespace kilokv::engine
