// Deltas are settled for the strategies that leave them. What a strategy says of itself is what it does, on the host
// and on a device. With every strategy, the engine compares the cells that the strategy left with the writes in its
// results. If they differ, a device is given up. On threads of the host, the process ends before the batch is logged.
// The table of a device is compared with that of the host.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/run/host_strategies.hpp"
#include "tests/unit/engine/child_process.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

bool has_deltas(const BatchResults& results) {
  return std::any_of(results.op_flags.begin(), results.op_flags.end(),
                     [](std::uint8_t flags) { return (flags & BatchResults::kDelta) != 0; });
}

// Runs on another executor, and sees what that one left.
class Observer final : public Executor {
 public:
  explicit Observer(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}

  std::vector<std::string> strategies() const override { return inner_->strategies(); }
  void use(std::size_t strategy) override { inner_->use(strategy); }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    const Status status = inner_->run(batch, records, results, report);
    left_deltas_ = has_deltas(*results);
    if (tampers_ && records->size() > tampered_ / 2) ++records->cells()[tampered_];
    if (spoil_) spoil_(results);
    return status;
  }
  bool needs_records() const override { return inner_->needs_records(); }
  CellDigests digests() const override {
    CellDigests digests = inner_->digests();
    digests.found += found_more_;
    digests.change += changed_more_;
    return digests;
  }
  void changed(KeyId id) override { inner_->changed(id); }
  const DeviceInfo* device() const override { return inner_->device(); }
  std::size_t memory_bytes() const override { return inner_->memory_bytes(); }

  bool left_deltas() const { return left_deltas_; }
  // Changes what the batch leaves: word 2d is the word of record d, and word 2d + 1 is its tag.
  void tamper(std::size_t word) {
    tampers_ = true;
    tampered_ = word;
  }
  void spoil_results(std::function<void(BatchResults*)> spoil) { spoil_ = std::move(spoil); }
  // Says that a device has found and changed something else.
  void add_to_digests(std::uint64_t found, std::uint64_t change) {
    found_more_ = found;
    changed_more_ = change;
  }

 private:
  std::unique_ptr<Executor> inner_;
  bool left_deltas_ = false, tampers_ = false;
  std::size_t tampered_ = 0;
  std::function<void(BatchResults*)> spoil_;
  std::uint64_t found_more_ = 0, changed_more_ = 0;
};

// An engine on an executor that is observed, and a batch whose ADDs commute.
struct Rig {
  explicit Rig(std::unique_ptr<Executor> executor) {
    auto made = std::make_unique<Observer>(std::move(executor));
    observer = made.get();
    EngineOptions options;
    options.strategy = "ordered";
    options.threads = 1;
    options.secret = RefereeScenario::kSecret;
    scenario.engine = create_engine_with(options, std::move(made));
    for (int i = 0; i < 200; ++i) {
      scenario.builder.begin();
      scenario.builder.op(OpKind::add, scenario.builder.key("k" + std::to_string(i % 3)), Operand::integer, i);
      scenario.builder.end();
    }
  }
  Observer* observer;
  RefereeScenario scenario;
};

// All but those that the engine itself runs.
const std::vector<std::string> kStrategies = [] {
  std::vector<std::string> names;
  for (const StrategyInfo& info : strategy_infos()) {
    if (!info.stays_on_cpu) names.push_back(info.name);
  }
  return names;
}();

std::unique_ptr<Executor> make(bool on_device) {
  if (on_device) return std::make_unique<DeviceExecutor>(open_emulated(), kStrategies);
  return std::make_unique<HostStrategies>(kStrategies, 2);
}

TEST(only_ordered_leaves_deltas) {
  for (const bool on_device : {false, true}) {
    for (std::size_t i = 0; i < kStrategies.size(); ++i) {
      Rig rig(make(on_device));
      rig.observer->use(i);
      rig.scenario.execute();
      const ExecutionReport& execution = rig.scenario.engine->execution();
      EXPECT_EQ(std::string(execution.strategy), kStrategies[i]);
      EXPECT_EQ(execution.on_device, on_device);
      EXPECT_EQ(rig.observer->left_deltas(), kStrategies[i] == "ordered");
      EXPECT_FALSE(has_deltas(rig.scenario.results));
      EXPECT_EQ(rig.scenario.check(referee_mode(execution)).message(), "");
      EXPECT_EQ(rig.scenario.engine->device().reason, "");
    }
  }
}

constexpr const char* kDiffer = "the writes of the batch do not lead to the records that it left";

// Runs one batch on threads of the host, in a child process. `spoil` changes what the executor does.
test::Death run_on_host(std::size_t strategy, const std::function<void(Rig*)>& spoil) {
  return test::run_in_child([&] {
    Rig rig(make(false));
    rig.observer->use(strategy);
    rig.scenario.builder.begin();
    rig.scenario.builder.op(OpKind::get, rig.scenario.builder.key("k0"));
    rig.scenario.builder.op(OpKind::get, rig.scenario.builder.key("only read"));
    rig.scenario.builder.end();
    rig.scenario.load("only read", 5);
    spoil(&rig);
    rig.scenario.execute();
    std::fprintf(stderr, "the batch has writes for the log");
  });
}
// The process ends, says why, and the batch gets no writes for the log.
void expect_end(const test::Death& death) {
  EXPECT_EQ(death.signal, SIGABRT);
  if (death.words.find(kDiffer) == std::string::npos) FAIL("it said: " + death.words);
  EXPECT_EQ(death.words.find("for the log"), std::string::npos);
}

TEST(the_engine_settles_deltas_where_the_strategy_leaves_them) {
  Rig rig(make(false));
  rig.scenario.execute();
  EXPECT_TRUE(rig.observer->left_deltas());
  EXPECT_FALSE(has_deltas(rig.scenario.results));
}
TEST(cells_of_host_threads_that_their_writes_do_not_explain_end_the_process) {
  for (std::size_t i = 0; i < kStrategies.size(); ++i) {
    EXPECT_EQ(run_on_host(i, [](Rig*) {}).words, "the batch has writes for the log");
    // The word and the tag of a record that the batch writes, and those of a record that it only reads.
    for (const std::size_t word : {0, 1, 6, 7})
      expect_end(run_on_host(i, [&](Rig* rig) { rig->observer->tamper(word); }));
  }
}

// Runs one batch on a device that the engine has to give up for this reason.
void expect_given_up(std::size_t strategy, const std::string& reason, const std::function<void(Rig*)>& spoil) {
  Rig rig(make(true));
  rig.observer->use(strategy);
  rig.scenario.load("k1", 70);
  spoil(&rig);
  rig.scenario.execute();
  EXPECT_EQ(rig.scenario.engine->device().reason, reason);
  EXPECT_EQ(rig.scenario.check(referee_mode(rig.scenario.engine->execution())).message(), "");
  EXPECT_TRUE(rig.scenario.engine->compute_state_hash() == rig.scenario.engine->state_hash());
}

TEST(cells_of_a_device_that_its_writes_do_not_explain_give_it_up) {
  for (std::size_t i = 0; i < kStrategies.size(); ++i) {
    expect_given_up(i, "", [](Rig*) {});
    expect_given_up(i, kDiffer, [](Rig* rig) { rig->observer->add_to_digests(0, 1); });
    expect_given_up(i, "the device's table differs from the host's table",
                    [](Rig* rig) { rig->observer->add_to_digests(1, 0); });
  }
}

// The last write to a record, and one before it: so there are writes to take back, and books to begin again.
TEST(writes_of_a_device_that_are_not_those_of_any_run_give_it_up) {
  using Change = std::function<void(Cell*, std::uint8_t*)>;
  const auto set_type = [](Cell* cell, ValueType type) { cell->tag = make_tag(version_of(cell->tag), type); };
  const std::vector<Change> changes = {
      [](Cell* cell, std::uint8_t*) { ++cell->word; },
      [](Cell*, std::uint8_t* flags) { *flags = 0; },
      [](Cell* cell, std::uint8_t*) { cell->tag = make_tag(version_of(cell->tag) + 1, type_of(cell->tag)); },
      [&](Cell* cell, std::uint8_t*) { set_type(cell, ValueType::absent); },
      // The word is that of no byte value, such as an address that nobody may read.
      [&](Cell* cell, std::uint8_t*) { set_type(cell, ValueType::bytes), cell->word = 8; },
  };
  for (std::size_t i = 0; i < kStrategies.size(); ++i) {
    for (const Change& change : changes) {
      expect_given_up(i, kDiffer, [&](Rig* rig) {
        rig->observer->spoil_results([&change](BatchResults* results) {
          const auto last = std::max_element(results->rank.begin(), results->rank.end()) - results->rank.begin();
          change(&results->op_cell[last], &results->op_flags[last]);
        });
      });
    }
    expect_given_up(i, kDiffer, [](Rig* rig) {
      rig->observer->spoil_results([](BatchResults* results) { results->op_cell[100].tag += make_tag(1, {}); });
    });
  }
}

}  // namespace
}  // namespace kilokv::engine
