// The referee's own model of the database: an ordered map of values, and an interpreter of one transaction. The
// interpreter follows docs/transactions.md, sections 3 to 6, as plainly as possible. It shares only the columns that it
// reads with engine/txn/interpreter.hpp, so that one bug cannot hide in both. For the same reason it does not use
// engine/txn/kinds.hpp. Speed does not matter here. Thread safety: that of std::map.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

class Engine;

using ModelValue = std::variant<std::monostate, std::int64_t, std::string>;  // monostate: absent

struct ModelRecord {
  ModelValue value;
  Version version = 0;
  TimeUs expires_us = 0;  // 0: never
  friend bool operator==(const ModelRecord&, const ModelRecord&) = default;
};

// Every key that was ever written, with tombstones, until they are dropped. To check one batch, the records of the keys
// and ranges that it names are enough.
struct ModelState {
  std::map<std::string, ModelRecord, std::less<>> records;
  Version tombstone_floor = 0;

  void drop_tombstones(Version floor);  // as Engine::drop_tombstones
};

// The state of an engine as a model.
ModelState model_of(const Engine& engine);

// The records of the keys that a batch names. They are enough to check a batch without ranges.
ModelState model_of_keys(const Engine& engine, const TransactionColumns& columns);

// A value as a transaction sees it.
struct ModelCell {
  ModelValue value;
  Version version = 0;
  bool own_write = false;  // a write of the same transaction: the version has no meaning
};

// The effect of one operation that ran.
struct ModelEffect {
  ModelCell cell;      // GET: the cell that it read; PUT, DELETE, ADD: the cell after it
  bool wrote = false;  // this operation wrote
  std::vector<std::pair<std::string, ModelCell>> pairs;  // of a range: read, or deleted (as they were before)
};

// A write of a run. `expires_us`: when the key expires from now on (0: never); nothing: it stays as it was.
struct ModelWrite {
  std::string key;
  ModelValue value;  // monostate: a delete
  std::optional<TimeUs> expires_us;
};

// The result of one run of a transaction: what it would answer and write. The run applies nothing.
struct ModelRun {
  Outcome outcome = Outcome::committed;  // any but undecided
  FailedIn failed_in = FailedIn::none;
  std::uint32_t failed_index = kNone;
  ModelCell guard;                   // the deciding guard's key; empty for a range guard
  std::uint32_t first_op = 0;        // the first operation of the list that ran
  std::vector<ModelEffect> effects;  // by operation of that list; empty when undone
  std::vector<ModelWrite> writes;    // in the order of the operations
};

// Runs transaction t on the state, with this commit version and batch time. Changes nothing. `last_try`: it expires if
// it would be postponed.
ModelRun run_on_model(const ModelState& state, const TransactionColumns& columns, std::size_t t, Version commit_version,
                      TimeUs batch_time_us, bool last_try = false);

// Applies one write of a run. Returns the record that it leaves.
const ModelRecord& apply_to_model(ModelState* state, const ModelWrite& write, Version commit_version);

}  // namespace kilokv::engine
