// One batch on one engine, with everything that the referee needs to check it. All members are public, so that a test
// can falsify any of them. Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/engine.hpp"
#include "engine/referee/referee.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

struct RefereeScenario {
  static constexpr Version kLoadVersion = 1;

  static constexpr KeyHashSecret kSecret{7, 11};

  KeyHashSecret secret = kSecret;
  std::unique_ptr<Engine> engine = make_engine({.strategy = "serial"});
  ModelState model;  // the state before the batch
  TransactionColumns columns;
  ColumnsBuilder builder{&columns, secret};
  Column<std::uint8_t> expires;
  BatchHeader header{1, 1'000'000, 100};
  BatchResults results;
  WriteColumns writes;

  static std::unique_ptr<Engine> make_engine(EngineOptions options) {
    options.secret = kSecret;
    auto engine = Engine::create(options);
    KILOKV_CHECK(engine.ok());
    return std::move(*engine);
  }

  void load(std::string_view key, std::int64_t value) {
    KILOKV_CHECK(engine->load(key, kLoadVersion, ValueType::integer, value, {}).ok());
  }

  // Runs the columns as one batch. For transactions with a wait timeout of 0 it is the last try.
  void execute() {
    model = model_of(*engine);
    expires.resize(columns.size());
    for (std::size_t t = 0; t < columns.size(); ++t) expires[t] = columns.wait_timeout_us[t] == 0 ? 1 : 0;
    KILOKV_CHECK(engine->execute(header, columns, expires, &results, &writes).ok());
  }

  // The referee's verdict. Sets `after` to the state that the referee reached.
  Status check(RefereeMode mode = RefereeMode::deterministic, ModelState* after = nullptr) const {
    ModelState state = model;
    const auto bytes_of = [this](Cell cell) { return engine->bytes_of(cell); };
    const Status status = check_execution({header, columns, expires, results, writes, bytes_of}, mode, &state);
    if (after != nullptr) *after = std::move(state);
    return status;
  }

  // Advances to the next batch of a chain.
  void next_batch() {
    engine->release_through(header.number);
    header = {header.number + 1, header.time_us + 1000, results.next_version};
    columns.clear();
  }
};

}  // namespace kilokv::engine
