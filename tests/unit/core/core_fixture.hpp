// A whole core in one thread: simulated environment, log in memory, the real engine. reopen() is a crash and a restart.
// Thread safety: none; one thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/database.hpp"
#include "tests/support/memory_log.hpp"
#include "tests/support/sim_environment.hpp"

namespace kilokv::server {

// Copies every result and failure that it gets, and checks that the calls follow core/request.hpp.
class RecordingSink : public ResponseSink, private ResultVisitor {
 public:
  struct Read {
    std::uint32_t operation;
    std::string key;
    ValueType type;
    std::int64_t integer;
    std::string bytes;
    std::optional<Version> version;
  };
  struct Answer {
    TransactionResult result;
    std::optional<Read> guard;
    std::vector<Read> reads;
  };

  void results(const ResultSlice& slice, bool last) override {
    EXPECT_FALSE(ended());
    slice.visit(this);
    ++slices;
    done = last;
  }
  void fail(const Status& status) override {
    EXPECT_FALSE(ended());
    failure = status;
  }
  bool ended() const { return done || failure; }
  const Answer& at(std::uint32_t index) const { return answers.at(index); }
  engine::Outcome outcome(std::uint32_t index) const {
    const auto found = answers.find(index);
    return found == answers.end() ? engine::Outcome::undecided : found->second.result.outcome;
  }

  std::map<std::uint32_t, Answer> answers;
  int slices = 0;
  bool done = false;
  std::optional<Status> failure;

 private:
  static Read copy(std::uint32_t operation, const ReadValue& value) {
    return {operation, std::string(value.key), value.type, value.integer, std::string(value.bytes), value.version};
  }
  void transaction(const TransactionResult& result) override {
    EXPECT_FALSE(answers.contains(result.index)) << "answered twice: " << result.index;
    last_ = &answers[result.index];
    last_->result = result;
  }
  void guard_value(const ReadValue& value) override { last_->guard = copy(0, value); }
  void read(std::uint32_t operation, const ReadValue& value) override {
    last_->reads.push_back(copy(operation, value));
  }
  Answer* last_ = nullptr;
};

class CoreFixture : public ::testing::Test {
 protected:
  using Build = std::function<void(engine::ColumnsBuilder&)>;

  explicit CoreFixture(std::uint64_t seed = 1) : sim(seed) {}
  void SetUp() override { open(); }

  void open() { open(&log, sim.environment()); }
  void open(CommitLog* commit_log, const Environment& environment) {
    database.reset();
    auto opened = try_open(commit_log, environment);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    database = std::move(*opened);
  }
  Result<std::unique_ptr<Database>> try_open(CommitLog* commit_log, const Environment& environment) {
    return Database::open(
        options, environment, commit_log,
        [this](const engine::KeyHashSecret& secret) {
          engine::EngineOptions engine_options;
          engine_options.strategy = strategy;
          engine_options.device = device_name;
          engine_options.emulated_device_fails = device_fails;
          engine_options.table_records_max = table_records_max;
          engine_options.secret = secret;
          Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::create(engine_options);
          if (!wrap_engine || !engine.ok()) return engine;
          return Result<std::unique_ptr<engine::Engine>>(wrap_engine(std::move(*engine)));
        },
        [this](const Status& status) { fatal = status; }, events);
  }
  // A crash: everything that is not in the log is lost.
  void reopen() { open(); }

  std::shared_ptr<RecordingSink> submit(const Build& build, std::optional<SessionId> session = {},
                                        std::uint64_t number = 0, std::uint64_t acknowledged_through = 0,
                                        std::uint64_t uploaded_keys = 0) {
    auto request = database->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    build(builder);
    auto sink = std::make_shared<RecordingSink>();
    request->identity = {session, number, acknowledged_through, {}};
    request->uploaded_keys = uploaded_keys;
    request->sink = sink;
    database->submit(std::move(request));
    return sink;
  }
  std::shared_ptr<RecordingSink> run(const Build& build, std::optional<SessionId> session = {},
                                     std::uint64_t number = 0, std::uint64_t acknowledged_through = 0) {
    auto sink = submit(build, session, number, acknowledged_through);
    settle();
    return sink;
  }
  void settle() { sim.scheduler.run_until_idle(); }

  SessionId open_session(DurationUs lease_us = 0) {
    SessionId id;
    bool opened = false;
    database->open_session({}, nullptr, lease_us, [&](Result<SessionId> result, DurationUs) {
      ASSERT_TRUE(result.ok()) << result.status().message();
      id = *result;
      opened = true;
    });
    settle();
    EXPECT_TRUE(opened);
    return id;
  }

  std::int64_t integer(const std::string& key) {
    auto sink = run([&](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::get, b.key(key));
      b.end();
    });
    return sink->at(0).reads.at(0).integer;
  }

  static Build add(const std::string& key, std::int64_t delta) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::add, b.key(key), engine::Operand::integer, delta);
      b.end();
    };
  }
  // A withdrawal that waits until the account has enough.
  static Build withdraw(const std::string& key, std::int64_t amount, DurationUs wait_us) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin(0, wait_us);
      const std::uint32_t k = b.key(key);
      b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, k, amount);
      b.op(engine::OpKind::add, k, engine::Operand::integer, -amount);
      b.end();
    };
  }
  static Build both(Build first, Build second) {
    return [=](engine::ColumnsBuilder& b) {
      first(b);
      second(b);
    };
  }

  DatabaseOptions options;
  DatabaseEvents events;
  std::string strategy = engine::EngineOptions().strategy;
  std::string device_name = engine::EngineOptions().device;
  std::function<bool()> device_fails;  // of the emulated device, called at each of its calls
  // If set, it makes the engine that the database uses from the real one.
  std::function<std::unique_ptr<engine::Engine>(std::unique_ptr<engine::Engine>)> wrap_engine;
  std::size_t table_records_max = engine::EngineOptions().table_records_max;
  SimEnvironment sim;
  MemoryLog log;
  std::optional<Status> fatal;
  std::unique_ptr<Database> database;
};

}  // namespace kilokv::server
