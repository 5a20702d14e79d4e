#include "server/core/database.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "server/core/checkpoint/checkpointer.hpp"
#include "server/core/checkpoint/recovery.hpp"
#include "server/core/digest.hpp"
#include "server/core/in_flight.hpp"
#include "server/core/pipeline/answer_stage.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/executor.hpp"
#include "server/core/pipeline/log_stage.hpp"
#include "server/core/sessions/stored_results.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kStatsIntervalUs = 100000;

class CoreDatabase final : public Database {
 public:
  CoreDatabase(const DatabaseOptions& options, const Environment& environment, CommitLog* log,
               std::function<void(const Status&)> on_fatal, DatabaseEvents events)
      : core_(options, environment, log),
        scans_(options.scans_in_flight_max, "scans", "--scans-in-flight-max"),
        commands_(options.commands_in_flight_max, "commands", "--commands-in-flight-max") {
    core_.on_fatal = std::move(on_fatal);
    core_.events = std::move(events);
  }
  // They notify each other: all stand still before the first one goes.
  ~CoreDatabase() override {
    for (Worker* worker : {core_.executor_worker, core_.log_worker, core_.answer_worker, core_.checkpoint_worker}) {
      if (worker != nullptr) worker->stop();
    }
    core_.log->watch_sessions(nullptr);
  }

  Status start(Recovery::EngineFactory create_engine);

  const engine::KeyHashSecret& key_secret() const override { return core_.secret; }
  const DatabaseOptions& options() const override { return core_.options; }
  std::unique_ptr<Request> acquire_request() override { return core_.requests.take(); }
  Result<std::uint64_t> upload(const ReadSetChunk& chunk) override;
  void submit(std::unique_ptr<Request> request) override;
  void open_session(DurationUs lease_us, std::function<void(Result<SessionId>, DurationUs)> done) override;
  Status keep_alive(const SessionId& session) override {
    return core_.sessions.touch(session, core_.environment.clock->monotonic_us());
  }
  void close_session(const SessionId& session, std::function<void(Status)> done) override;
  void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) override;
  void list_parked(std::uint64_t after_id, std::uint32_t limit,
                   std::function<void(Result<std::vector<ParkedTransaction>>)> done) override;
  void cancel(CancelTarget target, std::function<void(Result<std::uint64_t>)> done) override;
  DatabaseStatus status() const override;
  void drain(std::function<void()> answered, std::function<void()> done) override;

 private:
  void spawn_workers();
  std::shared_ptr<AdmittedRequest> admit(std::unique_ptr<Request> request, Status* status);
  Status complete_with_upload(AdmittedRequest* run);
  Status begin_in_session(AdmittedRequest* run);
  void give_back_upload(AdmittedRequest* run);
  void keep_only(const std::vector<std::uint32_t>& indices, Request* request);
  void recycle(std::unique_ptr<Request> request);
  void publish_engine_stats();
  void publish_device();

  CoreContext core_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> opening_sessions_{0};
  InFlight scans_, commands_;
  double recovery_seconds_ = 0;
  mutable std::mutex stats_mutex_;
  engine::EngineStats engine_stats_;
  engine::EngineDevice device_;
  TimeUs next_stats_us_ = 0;         // executor's thread
  std::uint32_t devices_lost_ = 0;   // likewise: told of
  BatchNumber validated_batch_ = 0;  // likewise: the last large read set that has been told of
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<LogStage> log_stage_;
  std::unique_ptr<AnswerStage> answer_stage_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Worker> executor_worker_, log_worker_, answer_worker_, checkpoint_worker_;
};

Status CoreDatabase::start(Recovery::EngineFactory create_engine) {
  const TimeUs begin = core_.environment.clock->monotonic_us();
  Recovery recovery(core_.environment.clock, std::move(create_engine), &core_.sessions);
  const Result<RecoveredPosition> position = core_.log->recover(&recovery);
  if (!position.ok()) return position.status();
  if (Status status = recovery.finish(*position); !status.ok()) return status;
  core_.log->watch_sessions([this] { return core_.sessions.stored_bytes(); });
  core_.engine = recovery.take_engine();
  core_.secret = recovery.secret();
  core_.queue.recovered_value(recovery.largest_value());
  const Position at{position->batch, position->next_version, position->tombstone_floor, position->time_us,
                    position->state_hash};
  core_.executed.set(at);
  core_.durable.set(at);
  core_.answered.set(at);
  engine_stats_ = core_.engine->stats();
  device_ = core_.engine->device();
  devices_lost_ = core_.engine->execution().devices_lost;
  recovery_seconds_ = static_cast<double>(core_.environment.clock->monotonic_us() - begin) * 1e-6;
  executor_ = std::make_unique<Executor>(&core_);
  log_stage_ = std::make_unique<LogStage>(&core_);
  answer_stage_ = std::make_unique<AnswerStage>(&core_);
  Position checkpoint = at;
  checkpoint.batch = position->checkpoint_batch;
  checkpointer_ = std::make_unique<Checkpointer>(&core_, executor_.get(), checkpoint, recovery.take_dropped());
  spawn_workers();
  return {};
}

void CoreDatabase::spawn_workers() {
  Scheduler* scheduler = core_.environment.scheduler;
  executor_worker_ = scheduler->spawn("executor", [this] {
    const TimeUs wake = executor_->step();
    publish_engine_stats();
    return wake;
  });
  log_worker_ = scheduler->spawn("log", [this] { return log_stage_->step(); });
  answer_worker_ = scheduler->spawn("answer", [this] { return answer_stage_->step(); });
  checkpoint_worker_ = scheduler->spawn("checkpoint", [this] { return checkpointer_->step(); });
  core_.executor_worker = executor_worker_.get();
  core_.log_worker = log_worker_.get();
  core_.answer_worker = answer_worker_.get();
  core_.checkpoint_worker = checkpoint_worker_.get();
  executor_worker_->notify();
  checkpoint_worker_->notify();
}

// What the engine knows of itself and of its device is too much to be asked after every batch; a device that is lost,
// and what checked a large read set, is told of at once all the same.
void CoreDatabase::publish_engine_stats() {
  const std::uint32_t lost = core_.engine->execution().devices_lost;
  if (lost != std::exchange(devices_lost_, lost)) publish_device();
  const TimeUs now = core_.environment.clock->monotonic_us();
  const BatchNumber last = core_.executed.batch();
  const bool has_validated = core_.engine->execution().validated != 0 && last != std::exchange(validated_batch_, last);
  if (now < next_stats_us_ && !has_validated) return;
  next_stats_us_ = now + kStatsIntervalUs;
  const engine::EngineStats stats = core_.engine->stats();
  const std::scoped_lock lock(stats_mutex_);
  engine_stats_ = stats;
}

void CoreDatabase::publish_device() {
  const engine::EngineDevice device = core_.engine->device();
  {
    const std::scoped_lock lock(stats_mutex_);
    device_ = device;
  }
  if (core_.events.device_lost) core_.events.device_lost(device);
}

void CoreDatabase::recycle(std::unique_ptr<Request> request) {
  request->clear();
  core_.requests.give(std::move(request));
}

// Puts the uploaded guards before the transaction's own, unless they are gone with the send that this one repeats.
Status CoreDatabase::complete_with_upload(AdmittedRequest* run) {
  Request& request = *run->content;
  run->uploaded = {request.uploaded_keys, digest_of(request.transactions)};
  Result<std::shared_ptr<Upload>> upload =
      core_.sessions.take_upload(*run->identity.session, run->identity.number, run->uploaded, &request.transactions);
  if (!upload.ok()) return upload.status();
  run->upload = std::move(*upload);
  run->own_batch = request.transactions.guard_kind.size() > core_.options.guards_max;
  return {};
}

// A retry after a crash runs only what has no result yet.
void CoreDatabase::keep_only(const std::vector<std::uint32_t>& indices, Request* request) {
  engine::TransactionColumns rest;
  for (const std::uint32_t i : indices) rest.append(request->transactions, i, i + 1);
  request->transactions = std::move(rest);
}

// Null with a status: refused. Null without: answered from the session, or joined to the one in flight.
std::shared_ptr<AdmittedRequest> CoreDatabase::admit(std::unique_ptr<Request> request, Status* status) {
  auto run = std::make_shared<AdmittedRequest>();
  run->identity = request->identity;
  run->transactions = static_cast<std::uint32_t>(request->transactions.size());
  run->admitted_us = core_.environment.clock->monotonic_us();
  run->content = std::move(request);
  if (run->content->uploaded_keys > 0) {
    *status = complete_with_upload(run.get());
    if (!status->ok()) {
      recycle(std::move(run->content));
      return nullptr;
    }
  }
  core_.queue.estimate(run.get());
  if (run->identity.session) {
    *status = begin_in_session(run.get());
    if (run->unanswered == 0) return nullptr;
  } else {
    run->sink = run->content->sink;
    run->to_run = run->unanswered = run->transactions;
  }
  return run;
}

// Leaves `unanswered` at 0 where nothing is to run: refused, with the status; answered from the session, or joined to
// the one in flight, without.
Status CoreDatabase::begin_in_session(AdmittedRequest* run) {
  Request& request = *run->content;
  const bool upload_gone = run->uploaded.keys > 0 && run->upload == nullptr;
  if (!upload_gone) run->identity.digest = digest_of(request.transactions);
  Admission admission = core_.sessions.begin({run->identity, run->transactions, request.sink,
                                              kRequestBytes + run->cost.stored_bytes, run->uploaded, upload_gone},
                                             run->admitted_us);
  if (admission.kind != Admission::Kind::run) {
    if (admission.kind == Admission::Kind::refused) give_back_upload(run);
    recycle(std::move(run->content));
    return admission.status;
  }
  std::uint64_t fixed_bytes = admission.all_remaining ? kRequestBytes : 0;
  if (!admission.all_remaining) {
    keep_only(admission.remaining, &request);
    run->indices = std::move(admission.remaining);
    core_.queue.estimate(run);
  }
  run->to_run = run->unanswered = static_cast<std::uint32_t>(request.transactions.size());
  fixed_bytes += run->to_run * kStoredTransactionBytes;
  run->stored_read_bytes = admission.reserved_bytes - std::min(admission.reserved_bytes, fixed_bytes);
  return {};
}

void CoreDatabase::give_back_upload(AdmittedRequest* run) {
  if (run->upload == nullptr) return;
  core_.sessions.put_back(*run->identity.session, run->identity.number, std::move(run->upload),
                          &run->content->transactions);
}

Result<std::uint64_t> CoreDatabase::upload(const ReadSetChunk& chunk) {
  if (draining_.load(std::memory_order_acquire)) return draining();
  Result<std::uint64_t> keys = core_.sessions.upload(chunk, core_.secret, core_.environment.clock->monotonic_us());
  if (!keys.ok()) core_.counters.refused.fetch_add(1, std::memory_order_relaxed);
  return keys;
}

void CoreDatabase::submit(std::unique_ptr<Request> request) {
  const std::shared_ptr<ResponseSink> sink = request->sink;
  Status status = draining_.load(std::memory_order_acquire) ? draining() : Status();
  std::shared_ptr<AdmittedRequest> run;
  if (status.ok()) run = admit(std::move(request), &status);
  if (run == nullptr) {
    if (!status.ok()) {
      core_.counters.refused.fetch_add(1, std::memory_order_relaxed);
      sink->fail(status);
    }
    return;
  }
  status = core_.queue.charge(run.get());
  if (!status.ok()) {
    core_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    give_back_upload(run.get());  // first: who hears that it is refused may come again at once
    if (run->identity.session) {
      core_.sessions.abandon(*run->identity.session, run->identity.number, status);
    } else {
      sink->fail(status);
    }
    return recycle(std::move(run->content));
  }
  run->upload.reset();
  core_.queue.push(std::move(run));
  core_.executor_worker->notify();
}

void CoreDatabase::open_session(DurationUs lease_us, std::function<void(Result<SessionId>, DurationUs)> done) {
  const DatabaseOptions& options = core_.options;
  if (draining_.load(std::memory_order_acquire)) return done(draining(), 0);
  if (lease_us == 0) lease_us = options.session_lease_us_default;
  if (lease_us < options.session_lease_us_min || lease_us > options.session_lease_us_max) {
    return done(
        Status::invalid({"lease_us",
                         std::to_string(options.session_lease_us_min) + " to " +
                             std::to_string(options.session_lease_us_max) + " microseconds",
                         std::to_string(lease_us) + " microseconds", "--session-lease-min, --session-lease-max"}),
        0);
  }
  // Those on their way count: they are in the table only when they are durable.
  const std::uint64_t opening = opening_sessions_.fetch_add(1) + 1;
  if (core_.sessions.count() + opening > options.sessions_max) {
    opening_sessions_.fetch_sub(1);
    return done(Status::exhausted({"sessions", std::to_string(options.sessions_max),
                                   std::to_string(core_.sessions.count()) + " open", "--sessions-max"},
                                  1000000),
                0);
  }
  if (Status status = commands_.enter(); !status.ok()) {
    opening_sessions_.fetch_sub(1);
    return done(std::move(status), 0);
  }
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::opened;
  entry.lease_us = lease_us;
  const std::uint64_t id[2] = {core_.environment.random->next(), core_.environment.random->next()};
  SessionId& session = entry.identity.session.emplace();
  static_assert(sizeof id == sizeof session.bytes);
  std::memcpy(session.bytes.data(), id, sizeof id);
  executor_->post([this, entry, done = commands_.returning(std::move(done))] {
    executor_->add_session_entry(entry, [this, entry, done] {
      opening_sessions_.fetch_sub(1);
      done(*entry.identity.session, entry.lease_us);
    });
  });
}

void CoreDatabase::close_session(const SessionId& session, std::function<void(Status)> done) {
  if (!core_.sessions.contains(session)) {
    return done(Status(StatusCode::failed_precondition, "unknown or expired session"));
  }
  if (Status status = commands_.enter(); !status.ok()) return done(std::move(status));
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::closed;
  entry.identity.session = session;
  executor_->post([this, entry, done = commands_.returning(std::move(done))] {
    executor_->add_session_entry(entry, [done] { done(Status()); });
  });
}

void CoreDatabase::scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) {
  if (draining_.load(std::memory_order_acquire)) return done(draining());
  if (Status status = scans_.enter(); !status.ok()) return done(std::move(status));
  executor_->post([this, request = std::move(request), done = scans_.returning(std::move(done))] {
    executor_->scan(request, done);
  });
}

void CoreDatabase::list_parked(std::uint64_t after_id, std::uint32_t limit,
                               std::function<void(Result<std::vector<ParkedTransaction>>)> done) {
  if (Status status = commands_.enter(); !status.ok()) return done(std::move(status));
  executor_->post([this, after_id, limit, done = commands_.returning(std::move(done))] {
    done(executor_->list_parked(after_id, limit));
  });
}

void CoreDatabase::cancel(CancelTarget target, std::function<void(Result<std::uint64_t>)> done) {
  if (draining_.load(std::memory_order_acquire)) return done(draining());
  if (Status status = commands_.enter(); !status.ok()) return done(std::move(status));
  executor_->post([this, target, done = commands_.returning(std::move(done))] { executor_->cancel(target, done); });
}

void CoreDatabase::drain(std::function<void()> answered, std::function<void()> done) {
  if (draining_.exchange(true)) return;
  auto end = [this, answered = std::move(answered), done = std::move(done)] {
    answered();
    checkpointer_->request(done);
  };
  executor_->post([this, end = std::move(end)] { executor_->drain(end); });
}

DatabaseStatus CoreDatabase::status() const {
  DatabaseStatus status;
  status.state = core_.stopped.load() ? DatabaseStatus::State::stopped
                 : draining_.load()   ? DatabaseStatus::State::draining
                                      : DatabaseStatus::State::ready;
  const Position durable = core_.durable.get();
  status.executed_batch = core_.executed.batch();
  status.durable_batch = durable.batch;
  status.checkpoint_batch = checkpointer_->last_batch();
  status.next_version = durable.next_version;
  status.state_hash = durable.state_hash;
  const Counters& counters = core_.counters;
  status.batches = counters.batches;
  status.transactions = counters.transactions;
  status.committed = counters.committed;
  status.guard_failed = counters.guard_failed;
  status.wait_expired = counters.wait_expired;
  status.overflow = counters.overflow;
  status.type_mismatch = counters.type_mismatch;
  status.refused = counters.refused;
  status.batches_serial = counters.batches_serial;
  status.batches_parallel = counters.batches_parallel;
  status.batches_on_device = counters.batches_on_device;
  status.shadow_batches = counters.shadow_batches;
  status.shadow_skipped = counters.shadow_skipped;
  status.queued_transactions = core_.queue.transactions();
  status.queued_bytes = core_.queue.bytes();
  status.parked = core_.parked;
  status.parked_bytes = core_.parked_bytes;
  status.sessions = core_.sessions.count();
  status.uploads = core_.sessions.upload_counts().uploads;
  status.uploads_bytes = core_.sessions.upload_counts().bytes;
  {
    const std::scoped_lock lock(stats_mutex_);
    status.engine = engine_stats_;
    status.device = device_;
  }
  status.log = core_.log->usage();
  status.recovery_seconds = recovery_seconds_;
  return status;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(
    const DatabaseOptions& options, const Environment& environment, CommitLog* log,
    std::function<Result<std::unique_ptr<engine::Engine>>(const engine::KeyHashSecret&)> create_engine,
    std::function<void(const Status&)> on_fatal, DatabaseEvents events) {
  if (Status status = options.validate(); !status.ok()) return status;
  auto database = std::make_unique<CoreDatabase>(options, environment, log, std::move(on_fatal), std::move(events));
  if (Status status = database->start(std::move(create_engine)); !status.ok()) return status;
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace kilokv::server
