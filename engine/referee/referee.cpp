#include "engine/referee/referee.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "engine/referee/compare.hpp"
#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

namespace {

using Indices = std::vector<std::uint32_t>;

// One replay. Each step runs a transaction on the model, compares the reported results with it, and applies it.
class Replay {
 public:
  Replay(const Execution& execution, ModelState* state)
      : execution_(execution),
        columns_(execution.columns),
        results_(execution.results),
        n_(static_cast<std::uint32_t>(execution.columns.size())),
        state_(state) {}

  // Whether a transaction with expire_runs_else is on its last try.
  bool may_have_last_tries() const;
  Status deterministic();
  Status any_order(bool with_waste);

 private:
  ModelRun run(std::uint32_t t, std::uint32_t rank, bool last_try = false) const {
    return run_on_model(*state_, columns_, t, execution_.header.first_version + rank, execution_.header.time_us,
                        last_try);
  }
  Indices by_precedence() const;
  Status finish(std::uint32_t t, std::uint32_t rank, const ModelRun& run);
  Status left_over(std::uint32_t t, std::uint32_t rank, const ModelRun& run) const;
  Status left_over_now(std::uint32_t t) const { return left_over(t, results_.rank[t], run(t, results_.rank[t])); }
  Status check_expired_rank(std::uint32_t t, std::uint32_t position) const;
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
  for (const ModelWrite& write : run.writes) {
    const ModelRecord& record = apply_to_model(state_, write, execution_.header.first_version + rank);
    writes_.push_back({rank, write.key, write.value, record.expires_us});
  }
  return {};
}

Status Replay::left_over(std::uint32_t t, std::uint32_t rank, const ModelRun& run) const {
  const bool expired = run.outcome == Outcome::postponed && execution_.expires[t] != 0;
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

bool Replay::may_have_last_tries() const {
  for (std::size_t t = 0; t < n_; ++t) {
    if (execution_.expires[t] != 0 && columns_.expire_runs_else[t] != 0) return true;
  }
  return false;
}

Status Replay::deterministic() {
  const Indices order = by_precedence();
  Indices waiting(n_);  // positions in `order`
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
  const auto is_last_try = [&](std::uint32_t t) { return execution_.expires[t] != 0; };
  const bool has_last_tries = std::any_of(waiting.begin(), waiting.end(), [&](std::uint32_t position) {
    return is_last_try(order[position]) && columns_.expire_runs_else[order[position]] != 0;
  });
  for (const std::uint32_t position : waiting) {
    const std::uint32_t t = order[position], rank = passes * n_ + position;
    Status status = has_last_tries && is_last_try(t) ? finish(t, rank, run(t, rank, true))
                                                     : left_over(t, rank, last_runs[position]);
    if (!status.ok()) return status;
  }
  return end(passes + (has_last_tries ? 1 : 0));
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
    if (rank == before)
      return mismatch(execution_, where, "a rank that no other transaction has", std::to_string(rank));
    const bool same_pass = rank / n_ == before / n_;
    if (same_pass && columns_.precedence[order[i]] < columns_.precedence[order[i - 1]]) {
      return mismatch(execution_, where, "before the higher precedence classes of its pass", std::to_string(rank));
    }
  }
  return {};
}

Status Replay::check_expired_rank(std::uint32_t t, std::uint32_t position) const {
  const std::uint32_t last = results_.passes * n_ + position;
  if (static_cast<Outcome>(results_.outcome[t]) != Outcome::wait_expired || results_.rank[t] == last) return {};
  return mismatch(execution_, "transaction " + std::to_string(t) + ": rank",
                  "passes x n + its position = " + std::to_string(last), std::to_string(results_.rank[t]));
}

// The transactions that are left over and that no state has explained yet.
//
// The results name the guard that decided, and the version of its key that the transaction saw. So a state can explain
// the transaction only while that key has that version: then the transaction is open. It is looked at when it opens.
// While it is open, it is looked at again if a key of an earlier guard is written, or the other key of the deciding
// one. So many transactions that wait for one key cost one look each, and not one for each write of the key.
class Unexplained {
 public:
  Unexplained(const Execution& execution, const Indices& left, const ModelState& state)
      : columns_(execution.columns), results_(execution.results), left_(columns_.size(), 0) {
    for (const std::uint32_t t : left) {
      left_[t] = 1;
      if (!names_guard(t)) continue;  // no state explains it
      if (sees_range(t)) {
        with_ranges_.push_back(t);
        continue;
      }
      const std::string_view key = own_key(t);
      by_version_[{key, version_of(results_.guard_cell[t].tag)}].push_back(t);
      versions_.emplace(key, 0);
    }
    for (auto& [key, version] : versions_) {
      const auto found = state.records.find(key);
      if (found != state.records.end()) version = found->second.version;
    }
  }

  // Removes the transactions that this state explains. The first form is for the first state that may explain any. Then
  // the second one is called for each write, in order.
  template <class F>
  void look(const F& explains) {
    for (std::uint32_t t = 0; t < left_.size(); ++t) look_at(t, explains);
    for (const auto& [key, version] : versions_) open(key, version);
  }
  template <class F>
  void look(std::string_view written, Version version, const F& explains) {
    advance(written, version, [&](std::string_view key, Version before) {
      close(key, before);
      for (const std::uint32_t t : open(key, version)) look_at(t, explains);
    });
    const auto first = watched_.lower_bound({written, 0});
    for (auto it = first; it != watched_.end() && it->first == written; ++it) look_at(it->second, explains);
    for (const std::uint32_t t : with_ranges_) look_at(t, explains);
  }
  // For a write before the first look().
  void skip(std::string_view written, Version version) {
    advance(written, version, [](std::string_view, Version) {});
  }
  bool has(std::uint32_t t) const { return left_[t] != 0; }

 private:
  bool names_guard(std::uint32_t t) const {
    return static_cast<FailedIn>(results_.failed_in[t]) == FailedIn::guards &&
           results_.failed_index[t] < columns_.guard_end[t] - columns_.guard_begin(t);
  }
  std::uint32_t deciding(std::uint32_t t) const { return columns_.guard_begin(t) + results_.failed_index[t]; }
  // The key of the deciding guard; empty if it has none. No key is empty.
  std::string_view own_key(std::uint32_t t) const {
    const std::uint32_t key = columns_.guard_key[deciding(t)];
    return key == kNone ? std::string_view() : columns_.key(key);
  }
  bool sees_range(std::uint32_t t) const {
    for (std::uint32_t g = columns_.guard_begin(t); g <= deciding(t); ++g) {
      if (uses_range(static_cast<GuardKind>(columns_.guard_kind[g]))) return true;
    }
    return false;
  }
  // Calls f(key) for each key, other than that of the deciding guard, whose writes may change what the guards say.
  template <class F>
  void for_watched(std::uint32_t t, const F& f) const {
    const std::string_view own = own_key(t);
    const auto watch = [&](std::uint32_t key) {
      if (key != kNone && columns_.key(key) != own) f(columns_.key(key));
    };
    for (std::uint32_t g = columns_.guard_begin(t); g <= deciding(t); ++g) {
      watch(columns_.guard_key[g]);
      watch(columns_.guard_other[g]);
    }
  }
  // Calls f(key, version before) if the key decides for some transaction. Notes its new version.
  template <class F>
  void advance(std::string_view written, Version version, const F& f) {
    const auto found = versions_.find(written);
    if (found == versions_.end()) return;
    const Version before = found->second;
    found->second = version;
    f(found->first, before);
  }
  const Indices& open(std::string_view key, Version version) {
    static const Indices kNobody;
    const auto found = by_version_.find({key, version});
    if (found == by_version_.end()) return kNobody;
    for (const std::uint32_t t : found->second) {
      if (has(t)) for_watched(t, [&](std::string_view watched) { watched_.emplace(watched, t); });
    }
    return found->second;
  }
  void close(std::string_view key, Version version) {
    const auto found = by_version_.find({key, version});
    if (found == by_version_.end()) return;
    for (const std::uint32_t t : found->second) {
      for_watched(t, [&](std::string_view watched) { watched_.erase({watched, t}); });
    }
  }
  template <class F>
  void look_at(std::uint32_t t, const F& explains) {
    if (has(t) && explains(t)) left_[t] = 0;
  }

  const TransactionColumns& columns_;
  const BatchResults& results_;
  std::vector<std::uint8_t> left_;
  std::map<std::pair<std::string_view, Version>, Indices> by_version_;  // of the deciding guard
  std::map<std::string_view, Version> versions_;                        // now, of the keys in by_version_
  std::set<std::pair<std::string_view, std::uint32_t>> watched_;        // the keys of open transactions
  Indices with_ranges_;
};

Status Replay::any_order(bool with_waste) {
  Indices done, left;
  for (std::uint32_t t = 0; t < n_; ++t) {
    const auto outcome = static_cast<Outcome>(results_.outcome[t]);
    (outcome == Outcome::postponed || outcome == Outcome::wait_expired ? left : done).push_back(t);
  }
  std::sort(done.begin(), done.end(),
            [&](std::uint32_t a, std::uint32_t b) { return results_.rank[a] < results_.rank[b]; });
  const std::uint32_t passes = results_.passes;
  if (passes > kWaitPassesMax || (passes == 0) != (n_ == 0)) {
    return mismatch(execution_, "passes", "1 to 16, or 0 for an empty batch", std::to_string(passes));
  }
  if (Status status = check_order(done); !status.ok()) return status;
  // The final state explains what is left over. If the limit of passes cut the batch off, a guard that was false in the
  // last pass may have become true since. Then any state of that pass will do.
  const bool is_cut_off = passes == kWaitPassesMax;
  const std::uint32_t deciding = !is_cut_off ? passes * n_ : with_waste ? 0 : (passes - 1) * n_;  // from this rank on
  Unexplained unexplained(execution_, left, *state_);
  const auto explains = [&](std::uint32_t t) { return left_over_now(t).ok(); };
  bool is_deciding = false;
  for (const std::uint32_t t : done) {
    const std::uint32_t rank = results_.rank[t];
    if (!is_deciding && rank >= deciding) {
      unexplained.look(explains);
      is_deciding = true;
    }
    const ModelRun run = this->run(t, rank);
    if (Status status = finish(t, rank, run); !status.ok()) return status;
    const Version version = execution_.header.first_version + rank;
    for (const auto& [key, value, expires_us] : run.writes) {
      if (is_deciding) {
        unexplained.look(key, version, explains);
      } else {
        unexplained.skip(key, version);
      }
    }
  }
  const Indices by_position = by_precedence();
  for (std::uint32_t position = 0; position < n_; ++position) {
    const std::uint32_t t = by_position[position];
    if (Status status = check_expired_rank(t, position); !status.ok()) return status;
    if (!unexplained.has(t)) continue;
    if (Status status = left_over_now(t); !status.ok()) return status;
  }
  return end(passes);
}

Status compare_states(const ModelState& expected, const ModelState& got) {
  const auto differs = [](const std::string& key, const std::string& wanted, const std::string& met) {
    return Status(StatusCode::internal, "state, key " + key + ": expected " + wanted + ", got " + met);
  };
  const auto text = [](const ModelRecord& record) {
    const std::string expiry = record.expires_us == 0 ? "" : ", expires " + std::to_string(record.expires_us);
    return describe(record.value) + " of version " + std::to_string(record.version) + expiry;
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
  if (mode == RefereeMode::deterministic || replay.may_have_last_tries()) return replay.deterministic();
  return replay.any_order(mode == RefereeMode::any_order_with_waste);
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
