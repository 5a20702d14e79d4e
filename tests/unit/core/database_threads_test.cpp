// A whole database on real threads, for the sanitizers: many clients with retries, waits, scans, cancels and short
// sessions, checkpoints all the time, then draining or a sudden end. Money is conserved, every request answered once.
#include <atomic>
#include <future>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/core/threads.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr int kClients = 4;
constexpr int kRounds = 60;
constexpr int kAccounts = 4;
constexpr std::int64_t kOpening = 1000;

// MemoryLog as any thread may use it.
class SharedMemoryLog : public CommitLog {
 public:
  Result<RecoveredPosition> recover(RecoveryVisitor* visitor) override {
    const std::scoped_lock lock(mutex_);
    return log_.recover(visitor);
  }
  Status reserve(std::uint64_t bytes, LogUse use) override {
    const std::scoped_lock lock(mutex_);
    return log_.reserve(bytes, use);
  }
  void release(std::uint64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    log_.release(bytes);
  }
  std::uint64_t room(LogUse use) override {
    const std::scoped_lock lock(mutex_);
    return log_.room(use);
  }
  void watch_sessions(const std::function<std::uint64_t()>& stored_bytes) override {
    const std::scoped_lock lock(mutex_);
    log_.watch_sessions(stored_bytes);
  }
  Status append(std::span<const LogRecord> records) override {
    const std::scoped_lock lock(mutex_);
    return log_.append(records);
  }
  Status checkpoint_begin() override {
    const std::scoped_lock lock(mutex_);
    return log_.checkpoint_begin();
  }
  Status checkpoint_records(std::span<const StoredRecord> records) override {
    const std::scoped_lock lock(mutex_);
    return log_.checkpoint_records(records);
  }
  Status checkpoint_drop(std::span<const std::string_view> keys) override {
    const std::scoped_lock lock(mutex_);
    return log_.checkpoint_drop(keys);
  }
  Status checkpoint_session(const StoredSession& session) override {
    const std::scoped_lock lock(mutex_);
    return log_.checkpoint_session(session);
  }
  Status checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) override {
    const std::scoped_lock lock(mutex_);
    return log_.checkpoint_end(covers, access_table);
  }
  Status trim(TimeUs now_us) override {
    const std::scoped_lock lock(mutex_);
    return log_.trim(now_us);
  }
  LogUsage usage() const override {
    const std::scoped_lock lock(mutex_);
    LogUsage usage = log_.usage();
    usage.bytes_since_checkpoint = 1 << 30;  // always time for the next checkpoint
    return usage;
  }

 private:
  mutable std::mutex mutex_;
  MemoryLog log_;
};

// RecordingSink that can be waited for.
class WaitedSink : public RecordingSink {
 public:
  void results(const ResultSlice& slice, bool last) override {
    RecordingSink::results(slice, last);
    if (last) ended_.set_value();
  }
  void fail(const Status& status) override {
    RecordingSink::fail(status);
    ended_.set_value();
  }
  void wait() { ended_.get_future().wait(); }

 private:
  std::promise<void> ended_;
};

class DatabaseThreadsTest : public ::testing::Test {
 protected:
  void open() {
    options_.batch_max_transactions = 16;
    options_.checkpoint_interval_us = 1000;
    options_.session_lease_us_min = 1000;
    options_.snapshot_age_us_max = 2000;
    options_.tombstone_retention_us = 2000;
    auto opened = Database::open(
        options_, {&clock_, &random_, &scheduler_}, &log_,
        [](const engine::KeyHashSecret& secret) {
          engine::EngineOptions options;
          options.secret = secret;
          return engine::Engine::create(options);
        },
        [](const Status& status) { FAIL() << status.message(); });
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    database_ = std::move(*opened);
  }

  std::shared_ptr<WaitedSink> submit(const std::function<void(engine::ColumnsBuilder&)>& build,
                                     std::optional<SessionId> session, std::uint64_t number, std::uint64_t through) {
    auto request = database_->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database_->key_secret());
    build(builder);
    auto sink = std::make_shared<WaitedSink>();
    request->identity = {session, number, through, {}};
    request->sink = sink;
    database_->submit(std::move(request));
    return sink;
  }

  SessionId open_session(DurationUs lease_us) {
    std::promise<SessionId> opened;
    database_->open_session({}, nullptr, lease_us, [&](Result<SessionId> session, DurationUs) {
      EXPECT_TRUE(session.ok());
      opened.set_value(*session);
    });
    return opened.get_future().get();
  }

  static std::string account(std::uint64_t i) { return "account" + std::to_string(i % kAccounts); }

  // One transfer that may wait, one that may be refused, and a key that comes and goes.
  static std::function<void(engine::ColumnsBuilder&)> transfers(std::uint64_t seed) {
    return [seed](engine::ColumnsBuilder& b) {
      std::mt19937_64 random(seed);
      for (const bool waits : {true, false}) {
        const std::uint64_t from = random(), to = random();
        const auto amount = static_cast<std::int64_t>(random() % 900);
        b.begin(0, waits ? 3000 : 0);
        const std::uint32_t source = b.key(account(from));
        b.guard(engine::GuardKind::greater_equal, waits ? engine::OnFalse::wait : engine::OnFalse::fail, source,
                amount);
        b.op(engine::OpKind::add, source, engine::Operand::integer, -amount);
        b.op(engine::OpKind::add, b.key(account(to)), engine::Operand::integer, amount);
        b.end();
      }
      b.begin();
      const std::uint32_t fleeting = b.key("fleeting" + std::to_string(random() % 8));
      b.op(engine::OpKind::get, fleeting);
      if (random() % 2 == 0) {
        b.op(engine::OpKind::put, fleeting, engine::Operand::bytes, b.value(std::string(random() % 300, 'v')));
      } else {
        b.op(engine::OpKind::del, fleeting);
      }
      b.end();
    };
  }

  // Each request is sent twice, the second time while the first may be anywhere.
  void client(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const SessionId session = open_session(60000000);
    for (std::uint64_t number = 1; number <= kRounds; ++number) {
      const auto build = transfers(seed * 1000 + number);
      auto first = submit(build, session, number, number - 1);
      auto retry = submit(build, session, number, number - 1);
      if (random() % 8 == 0) database_->cancel({}, {session, number, {}, 0}, [](Result<std::uint64_t>) {});
      if (random() % 4 == 0) scan_all();
      first->wait();
      retry->wait();
      if (!first->done || !retry->done) {
        ADD_FAILURE() << "a request failed";
        continue;
      }
      for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(first->at(i).result.version, retry->at(i).result.version);
        EXPECT_EQ(first->at(i).result.outcome, retry->at(i).result.outcome);
      }
    }
    std::promise<void> closed;
    database_->close_session({}, nullptr, session, [&](const Status&) { closed.set_value(); });
    closed.get_future().wait();
  }

  // Sees all the money at one boundary, in pages.
  void scan_all() {
    ScanRequest request{"account", "accounu", 1, {}, true};
    std::int64_t total = 0;
    for (;;) {
      std::promise<Result<ScanPage>> got;
      database_->scan(request, [&](Result<ScanPage> page) { got.set_value(std::move(page)); });
      const Result<ScanPage> page = got.get_future().get();
      if (!page.ok()) return;  // too old: allowed
      for (const ScanPage::Pair& pair : page->pairs) total += pair.integer;
      if (!page->more) break;
      request.boundary = page->boundary;
      request.from = page->next_from;
    }
    EXPECT_EQ(total, kOpening * kAccounts);
  }

  void fund() {
    auto sink = submit(
        [](engine::ColumnsBuilder& b) {
          for (std::uint64_t i = 0; i < kAccounts; ++i) {
            b.begin();
            b.op(engine::OpKind::put, b.key(account(i)), engine::Operand::integer, kOpening);
            b.end();
          }
        },
        {}, 0, 0);
    sink->wait();
  }

  DatabaseOptions options_;
  SystemClock clock_;
  SystemRandom random_;
  ThreadScheduler scheduler_;
  SharedMemoryLog log_;
  std::unique_ptr<Database> database_;
};

TEST_F(DatabaseThreadsTest, ManyClientsAtOnce) {
  open();
  fund();
  std::vector<std::thread> clients;
  for (std::uint64_t i = 1; i <= kClients; ++i) clients.emplace_back([this, i] { client(i); });
  std::atomic<bool> over{false};
  std::thread watcher([&] {
    while (!over.load()) {
      database_->status();
      open_session(1000);  // expires at once
      std::promise<void> listed;
      database_->list_parked({}, 0, 10, [&](const Result<ParkedPage>&) { listed.set_value(); });
      listed.get_future().wait();
    }
  });
  for (std::thread& thread : clients) thread.join();
  over = true;
  watcher.join();
  std::promise<void> drained;
  database_->drain([] {}, [&] { drained.set_value(); });
  drained.get_future().wait();
  EXPECT_EQ(log_.usage().reserved_bytes, 0u);
  database_.reset();
  open();  // checks the state's hash
  scan_all();
}

TEST_F(DatabaseThreadsTest, ItEndsAtAnyTime) {
  for (std::uint64_t round = 0; round < 40; ++round) {
    open();
    if (round == 0) fund();
    const SessionId session = open_session(1000);
    std::vector<std::shared_ptr<WaitedSink>> sinks;
    for (std::uint64_t i = 1; i <= 1 + round % 7; ++i) sinks.push_back(submit(transfers(round + i), session, i, 0));
    sinks.front()->wait();
    database_.reset();
  }
  open();
  scan_all();
}

}  // namespace
}  // namespace kilokv::server
