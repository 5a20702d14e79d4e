// A Database for tests of the gRPC service. It keeps each submitted request until the test answers it. Thread safety:
// any thread may call submit() and take().
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/core/database.hpp"
#include "server/service/unix_time.hpp"
#include "tests/support/fake_log.hpp"

namespace kilokv::server::test {

// A slice in which every transaction of the request committed in batch 1.
class CommittedSlice final : public ResultSlice {
 public:
  explicit CommittedSlice(std::uint32_t size) : size_(size) {}
  std::uint32_t size() const override { return size_; }
  void visit(ResultVisitor* visitor) const override {
    for (std::uint32_t i = 0; i < size_; ++i) {
      TransactionResult result;
      result.index = result.rank = i;
      result.outcome = engine::Outcome::committed;
      result.batch = result.admitted_batch = 1;
      result.version = 100 + i;
      visitor->transaction(result);
    }
  }

 private:
  std::uint32_t size_;
};

class FakeDatabase final : public Database {
 public:
  const engine::KeyHashSecret& key_secret() const override { return secret_; }
  const DatabaseOptions& options() const override { return options_; }
  std::unique_ptr<Request> acquire_request() override { return std::make_unique<Request>(); }

  Result<std::uint64_t> upload(const ReadSetChunk& chunk) override {
    if (chunk.offset > 0) return missing_upload(chunk.identity.number, chunk.offset, 0);
    return chunk.keys.size();
  }

  SubmittedRequest submit(std::unique_ptr<Request> request) override {
    const std::lock_guard lock(mutex_);
    const bool in_session = request->identity.session.has_value();
    requests_.push_back(std::move(request));
    ++submitted_;
    changed_.notify_all();
    if (in_session) return {};
    return std::shared_ptr<AdmittedRequest>(alive_, nullptr);
  }
  void abandon(const SubmittedRequest&) override {
    const std::lock_guard lock(mutex_);
    ++abandoned_;
  }
  std::uint64_t abandoned() {
    const std::lock_guard lock(mutex_);
    return abandoned_;
  }

  // Waits for the next request. Returns null after 10 seconds.
  std::unique_ptr<Request> take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !requests_.empty(); })) return nullptr;
    std::unique_ptr<Request> request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }
  static void commit(Request* request) {
    request->sink->results(CommittedSlice(static_cast<std::uint32_t>(request->transactions.size())), true);
  }
  std::uint64_t submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }

  void open_session(std::shared_ptr<Client>, std::shared_ptr<const Login>, DurationUs lease_us,
                    std::function<void(Result<SessionId>, DurationUs)> done) override {
    SessionId session;
    session.bytes.fill('s');
    done(session, lease_us);
  }
  Status keep_alive(const std::shared_ptr<Client>&, const HeldSession& session) override {
    called_ = session.holder;
    return Status(StatusCode::failed_precondition, ErrorReason::session_unknown, "unknown session");
  }
  const Access& access() const override { return access_; }
  // The table before the last change, while its batch is not answered.
  Access::Table durable_access() override {
    Position at;
    return access_.answered(answered_, &at);
  }
  TimeUs time_of_day() const override { return std::max(unix_us_now(), last_stamp_us_.load()); }
  void set_last_stamp(TimeUs stamp_us) { last_stamp_us_ = stamp_us; }
  void change_access(std::shared_ptr<Client>, AccessEdit edit, std::function<void(Result<BatchNumber>)> done,
                     AccessChangeBegins begins = {}) override {
    const Result<AccessChange> change = edit(*access_.latest());
    if (!change.ok()) return done(change.status());
    if (begins) begins(1, "");
    AccessTable next = *access_.latest();
    next.apply(*change);
    access_.install(std::move(next), {*change}, 0, 1, answered_);
    Position at;
    at.batch = 1;
    answered_.set(at);
    done(BatchNumber{1});
  }
  Status check_session(const std::shared_ptr<Client>&, const HeldSession& session) const override {
    called_ = session.holder;
    return {};
  }
  void close_session(std::shared_ptr<Client>, std::shared_ptr<const Login>, const HeldSession& session,
                     std::function<void(Status)> done) override {
    called_ = session.holder;
    done({});
  }
  // The holder that the last call has named.
  std::uint64_t called_as() const { return called_; }
  void attach_session(std::shared_ptr<Client>, std::shared_ptr<const Login>, const AttachTarget& target,
                      std::function<void(Result<SessionList>)> done, AttachBegins begins = {}) override {
    run_before_command();
    if (begins && target.holder == 0) begins(1, 2);
    attach_target_ = target;
    if (attach_error_) return done(*attach_error_);
    done(attach_answer_ ? attach_answer_(target) : SessionList{.holder = 2, .lease_us = 1000});
  }
  Status add_results(const AttachTarget&, SessionList*) const override { return {}; }  // they are in the list
  // What the next attaches and lists get. Empty: an empty list.
  void answer_attaches(std::function<SessionList(const AttachTarget&)> answer) { attach_answer_ = std::move(answer); }
  void refuse_attaches(Status status) { attach_error_ = std::move(status); }
  const AttachTarget& attach_target() const { return attach_target_; }
  void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) override {
    if (request.boundary) return done(Status(StatusCode::aborted, ErrorReason::snapshot_too_old, "snapshot too old"));
    ScanPage page;
    page.boundary = 4;
    if (request.keep_boundary) page.reader = 7;
    page.pairs.push_back({.key = request.from, .type = ValueType::bytes, .integer = 0, .bytes = "v", .version = 3});
    done(std::move(page));
  }
  void list_parked(std::shared_ptr<Client>, std::uint64_t after_id, std::uint32_t limit,
                   std::function<void(Result<ParkedPage>)> done) override {
    run_before_command();
    ParkedPage page{std::vector<ParkedTransaction>(limit), true};
    for (ParkedTransaction& p : page.parked) p.id = ++after_id;
    done(std::move(page));
  }
  // Keeps the next cancels unanswered.
  void hold_cancels() { holds_cancels_ = true; }
  std::size_t held_cancels() {
    const std::lock_guard lock(mutex_);
    return held_cancels_.size();
  }
  void answer_cancels() {
    for (const auto& done : held_cancels_) done(std::uint64_t{1});
    held_cancels_.clear();
  }
  void cancel(std::shared_ptr<Client>, CancelTarget target, std::function<void(Result<std::uint64_t>)> done) override {
    run_before_command();
    if (const Status allowed = target.allowed ? target.allowed() : Status(); !allowed.ok()) return done(allowed);
    if (holds_cancels_) {
      const std::lock_guard lock(mutex_);
      return held_cancels_.push_back(std::move(done));
    }
    done(target.parked_id == 0 ? std::uint64_t{2} : std::uint64_t{1});
  }
  void probe(std::function<void()> done) override { done(); }
  // Makes the backups.
  std::function<std::unique_ptr<BackupSource>()> backups;
  Result<std::unique_ptr<BackupSource>> open_backup() override { return backups(); }
  // What is watched.
  FakeLog log;
  Incarnation log_incarnation;
  Position answered() const override { return log.newest(); }
  Position durable() const override { return log.newest(); }
  void when_answered(BatchNumber batch, std::function<void()> work) override { log.when_there(batch, std::move(work)); }
  Result<std::unique_ptr<LogReader>> open_log_reader() override { return log.open(); }
  Incarnation incarnation() const override { return log_incarnation; }
  DatabaseStatus status() const override {
    DatabaseStatus status;
    status.state = DatabaseStatus::State::ready;
    status.durable_batch = 17;
    status.device = {"cpu", "a model", "a reason"};
    status.batches_serial = 1;
    status.batches_parallel = 2;
    status.batches_on_device = 3;
    status.shadow_batches = 4;
    status.shadow_skipped = 5;
    return status;
  }
  const CoreMetrics& metrics() const override { return metrics_; }
  std::vector<SessionInfo> list_sessions(std::size_t /*limit*/) const override { return {}; }
  HotKeys hot_keys(KeyUse /*use*/, std::size_t /*limit*/) const override { return {}; }
  void set_failed() { metrics_.has_failed = true; }
  std::vector<SlowTransaction> slow_transactions() const override { return {}; }
  void drain(std::function<void()> answered, std::function<void()> done) override {
    answered();
    done();
  }

  // Runs before the next list or cancel is carried out, as something that the executor does first.
  void before_next_command(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    before_command_ = std::move(work);
  }
  bool has_work_before_command() {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(before_command_);
  }

 private:
  void run_before_command() {
    std::function<void()> work;
    {
      const std::lock_guard lock(mutex_);
      work = std::exchange(before_command_, nullptr);
    }
    if (work) work();
  }
  CoreMetrics metrics_;
  Access access_;
  mutable std::atomic<std::uint64_t> called_{0};
  AttachTarget attach_target_;
  std::function<SessionList(const AttachTarget&)> attach_answer_;
  std::optional<Status> attach_error_;
  SharedPosition answered_;
  std::atomic<TimeUs> last_stamp_us_{0};
  const engine::KeyHashSecret secret_{};
  const DatabaseOptions options_{};
  std::mutex mutex_;
  std::function<void()> before_command_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Request>> requests_;
  std::uint64_t submitted_ = 0, abandoned_ = 0;
  bool holds_cancels_ = false;
  std::vector<std::function<void(Result<std::uint64_t>)>> held_cancels_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // what the handles of requests refer to
};

}  // namespace kilokv::server::test
