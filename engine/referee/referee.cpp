#include "engine/referee/referee.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/referee/compare.hpp"

namespace kilokv::engine {

namespace {

using Indices = std::vector<std::uint32_t>;

// One replay. Each step runs a transaction on the model, compares what was reported, and applies it.
class Replay {
 public:
  Replay(const Execution& execution, ModelState* state)
      : execution_(execution),
        columns_(execution.columns),
        results_(execution.results),
        n_(static_cast<std::uint32_t>(execution.columns.size())),
        state_(state) {}

  Status deterministic();
  Status any_order();

 private:
  ModelRun run(std::uint32_t t, std::uint32_t rank) const {
    return run_on_model(*state_, columns_, t, execution_.header.first_version + rank, execution_.header.time_us);
  }
  Indices by_precedence() const;
  Status finish(std::uint32_t t, std::uint32_t rank, const ModelRun& run);
  Status left_over(std::uint32_t t, std::uint32_t rank, const ModelRun& run) const;
  Status end(std::uint32_t passes) const;
  Status check_order(const Indices& order) const;

  const Execution& execution_;
  const TransactionColumns& columns_;
  const BatchResults& results_;
  const std::uint32_t n_;
  ModelState* state_;
  std::vector<ExpectedWrite> writes_;
};

Indices Replay::by_precedence() const {
  Indices order(n_);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return columns_.precedence[a] < columns_.precedence[b]; });
  return order;
}

Status Replay::finish(std::uint32_t t, std::uint32_t rank, const ModelRun& run) {
  Status status = compare_transaction(execution_, {t, run.outcome, rank, run});
  if (!status.ok()) return status;
  apply_to_model(state_, run, execution_.header.first_version + rank);
  for (const auto& [key, value] : run.writes) writes_.push_back({rank, key, value});
  return {};
}

Status Replay::left_over(std::uint32_t t, std::uint32_t rank, const ModelRun& run) const {
  const bool expired = run.outcome == Outcome::postponed && execution_.last_try[t] != 0;
  return compare_transaction(execution_, {t, expired ? Outcome::wait_expired : run.outcome, rank, run});
}

Status Replay::end(std::uint32_t passes) const {
  if (results_.passes != passes) {
    return mismatch(execution_, "passes", std::to_string(passes), std::to_string(results_.passes));
  }
  const Version next = execution_.header.first_version + Version{passes} * n_;
  if (results_.next_version != next) {
    return mismatch(execution_, "next_version", std::to_string(next), std::to_string(results_.next_version));
  }
  return compare_writes(execution_, writes_);
}

Status Replay::deterministic() {
  const Indices order = by_precedence();
  Indices waiting(n_);  // positions
  std::iota(waiting.begin(), waiting.end(), 0u);
  std::vector<ModelRun> last_runs(n_);
  std::uint32_t passes = 0;
  bool finished_any = true;
  while (!waiting.empty() && finished_any && passes < kWaitPassesMax) {
    Indices still_waiting;
    for (const std::uint32_t position : waiting) {
      const std::uint32_t rank = passes * n_ + position;
      ModelRun run = this->run(order[position], rank);
      if (run.outcome == Outcome::postponed) {
        last_runs[position] = std::move(run);
        still_waiting.push_back(position);
      } else if (Status status = finish(order[position], rank, run); !status.ok()) {
        return status;
      }
    }
    finished_any = still_waiting.size() < waiting.size();
    waiting = std::move(still_waiting);
    ++passes;
  }
  for (const std::uint32_t position : waiting) {
    const Status status = left_over(order[position], passes * n_ + position, last_runs[position]);
    if (!status.ok()) return status;
  }
  return end(passes);
}

// Requires: order is sorted by rank.
Status Replay::check_order(const Indices& order) const {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t rank = results_.rank[order[i]];
    const std::string where = "transaction " + std::to_string(order[i]) + ": rank";
    if (rank >= results_.passes * n_) {
      return mismatch(execution_, where, "below passes x n = " + std::to_string(results_.passes * n_),
                      std::to_string(rank));
    }
    if (i == 0) continue;
    const std::uint32_t before = results_.rank[order[i - 1]];
    if (rank == before) return mismatch(execution_, where, "a rank of its own", std::to_string(rank));
    const bool same_pass = rank / n_ == before / n_;
    if (same_pass && columns_.precedence[order[i]] < columns_.precedence[order[i - 1]]) {
      return mismatch(execution_, where, "before the higher precedence classes of its pass", std::to_string(rank));
    }
  }
  return {};
}

Status Replay::any_order() {
  Indices done, left;
  for (std::uint32_t t = 0; t < n_; ++t) {
    const auto outcome = static_cast<Outcome>(results_.outcome[t]);
    (outcome == Outcome::postponed || outcome == Outcome::wait_expired ? left : done).push_back(t);
  }
  std::sort(done.begin(), done.end(),
            [&](std::uint32_t a, std::uint32_t b) { return results_.rank[a] < results_.rank[b]; });
  const std::uint32_t passes = results_.passes;
  if (passes > kWaitPassesMax || (passes == 0) != (n_ == 0)) {
    return mismatch(execution_, "passes", "1 to 16 (0 of an empty batch)", std::to_string(passes));
  }
  if (Status status = check_order(done); !status.ok()) return status;
  for (const std::uint32_t t : done) {
    const std::uint32_t rank = results_.rank[t];
    if (Status status = finish(t, rank, run(t, rank)); !status.ok()) return status;
  }
  const Indices by_position = by_precedence();
  Indices position_of(n_);
  for (std::uint32_t position = 0; position < n_; ++position) position_of[by_position[position]] = position;
  for (const std::uint32_t t : left) {
    const bool expired = static_cast<Outcome>(results_.outcome[t]) == Outcome::wait_expired;
    const std::uint32_t last = passes * n_ + position_of[t];
    if (expired && results_.rank[t] != last) {
      return mismatch(execution_, "transaction " + std::to_string(t) + ": rank",
                      "behind the last pass, by its position: " + std::to_string(last),
                      std::to_string(results_.rank[t]));
    }
    // Cut off by the limit of passes, its guard may have become true since.
    if (passes == kWaitPassesMax) continue;
    if (Status status = left_over(t, results_.rank[t], run(t, results_.rank[t])); !status.ok()) return status;
  }
  return end(passes);
}

Status compare_states(const ModelState& expected, const ModelState& got) {
  const auto differs = [](const std::string& key, const std::string& wanted, const std::string& met) {
    return Status(StatusCode::internal, "state, key " + key + ": expected " + wanted + ", got " + met);
  };
  const auto text = [](const ModelRecord& record) {
    return describe(record.value) + " of version " + std::to_string(record.version);
  };
  for (const auto& [key, record] : expected.records) {
    const auto found = got.records.find(key);
    if (found == got.records.end()) return differs(key, text(record), "no record");
    if (found->second != record) return differs(key, text(record), text(found->second));
  }
  for (const auto& [key, record] : got.records) {
    if (!expected.records.contains(key)) return differs(key, "no record", text(record));
  }
  return {};
}

}  // namespace

Status check_execution(const Execution& execution, RefereeMode mode, ModelState* state) {
  if (Status status = compare_shapes(execution); !status.ok()) return status;
  Replay replay(execution, state);
  return mode == RefereeMode::deterministic ? replay.deterministic() : replay.any_order();
}

Status check_state(const ModelState& state, const Engine& engine) {
  if (Status status = compare_states(state, model_of(engine)); !status.ok()) return status;
  if (engine.state_hash() != engine.compute_state_hash()) {
    return {StatusCode::internal, "state hash: the one kept up to date differs from the one computed from the table"};
  }
  return {};
}

Status check_keys(const ModelState& state, const Engine& engine, const TransactionColumns& columns) {
  return compare_states(state, model_of_keys(engine, columns));
}

}  // namespace kilokv::engine
