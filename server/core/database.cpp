#include "server/core/database.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/core/access/access_check.hpp"
#include "server/core/checkpoint/checkpointer.hpp"
#include "server/core/checkpoint/recovery.hpp"
#include "server/core/clients/in_flight.hpp"
#include "server/core/memory/memory_bounds.hpp"
#include "server/core/pipeline/access_changes.hpp"
#include "server/core/pipeline/admission.hpp"
#include "server/core/pipeline/answer_stage.hpp"
#include "server/core/pipeline/batcher.hpp"
#include "server/core/pipeline/core_context.hpp"
#include "server/core/pipeline/engine_monitor.hpp"
#include "server/core/pipeline/execute_stage.hpp"
#include "server/core/pipeline/log_stage.hpp"
#include "server/core/pipeline/read_only.hpp"
#include "server/core/pipeline/session_changes.hpp"
#include "server/core/reads/reader.hpp"
#include "server/core/waiting/waiting.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint32_t kListedAtOnce = 1024;  // about a millisecond

// A jump that the stamps have followed leaves the clock in step.
void note_clock(const ClockChange& change, CoreContext* core) {
  using Kind = ClockChange::Kind;
  static_assert(static_cast<std::size_t>(Kind::behind) + 1 == CoreMetrics::kClockKinds);
  const bool is_in_step = change.kind == Kind::in_step || change.kind == Kind::jumped;
  core->metrics.clock_changes[static_cast<std::size_t>(change.kind)].fetch_add(1, std::memory_order_relaxed);
  core->metrics.clock_out_of_step_us.store(is_in_step ? 0 : change.by_us, std::memory_order_relaxed);
  if (core->events.clock_changed) core->events.clock_changed(change);
}

// The parts that need the recovered engine. The order matters: each part may use those before it.
struct Parts {
  Parts(CoreContext* core, InFlight* commands, const Position& checkpoint, std::vector<std::string> dropped)
      : waiting(core->options,
                [](const Parked& parked) { return static_cast<const AdmittedRequest*>(parked.owner.get())->failed; }),
        reader(core->options, core->environment, core->engine.get(), core->secret),
        batcher(core->options, core->environment.clock, &core->access, &core->queue, &core->requests, &waiting,
                core->executed.get().time_us, [core](const ClockChange& change) { note_clock(change, core); }),
        execute(core, &batcher, &waiting, &reader),
        log(core),
        answer(core),
        sessions(core, &execute, &batcher, &waiting, commands),
        access(core, &execute, &batcher, &sessions, commands),
        monitor(core),
        checkpointer(core, &execute, &reader, checkpoint, std::move(dropped)) {}

  Waiting waiting;
  Reader reader;
  Batcher batcher;
  ExecuteStage execute;
  LogStage log;
  AnswerStage answer;
  SessionChanges sessions;
  AccessChanges access;
  EngineMonitor monitor;
  Checkpointer checkpointer;
};

class CoreDatabase final : public Database {
 public:
  CoreDatabase(const DatabaseOptions& options, const Environment& environment, CommitLog* log,
               std::function<void(const Status&)> on_fatal, DatabaseEvents events)
      : core_(options, environment, log),
        admission_(&core_),
        scans_(options.scans_in_flight_max, "scans", "--scans-in-flight-max", &Client::scans),
        commands_(options.commands_in_flight_max, "commands", "--commands-in-flight-max", &Client::commands) {
    core_.on_fatal = std::move(on_fatal);
    core_.events = std::move(events);
  }
  // The workers notify each other, so all are stopped before the first is destroyed.
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
  Result<std::uint64_t> upload(const ReadSetChunk& chunk) override { return admission_.upload(chunk); }
  SubmittedRequest submit(std::unique_ptr<Request> request) override { return admission_.submit(std::move(request)); }
  void abandon(const SubmittedRequest& request) override { parts_->execute.abandon(request); }
  void open_session(std::shared_ptr<Client> client, std::shared_ptr<const Login> login, DurationUs lease_us,
                    std::function<void(Result<SessionId>, DurationUs)> done) override {
    if (core_.options.read_only) return done(read_only_refusal("OpenSession").as_not_run(), 0);
    parts_->sessions.open(client, std::move(login), lease_us, std::move(done));
  }
  Status keep_alive(const std::shared_ptr<Client>& client, const HeldSession& session) override {
    if (Status status = check_session(client, session); !status.ok()) return status;
    return core_.sessions.touch(session, core_.environment.clock->monotonic_us());
  }
  Status check_session(const std::shared_ptr<Client>& client, const HeldSession& session) const override {
    return core_.sessions.check_holder(session, client.get());
  }
  void close_session(std::shared_ptr<Client> client, std::shared_ptr<const Login> login, const HeldSession& session,
                     std::function<void(Status)> done) override {
    if (core_.options.read_only) return done(read_only_refusal("CloseSession").as_not_run());
    parts_->sessions.close(client, std::move(login), session, std::move(done));
  }
  void attach_session(std::shared_ptr<Client> client, std::shared_ptr<const Login> login, const AttachTarget& target,
                      std::function<void(Result<SessionList>)> done, AttachBegins begins) override {
    if (core_.options.read_only && target.holder == 0) return done(read_only_refusal("AttachSession").as_not_run());
    parts_->sessions.attach(client, std::move(login), target, std::move(begins), std::move(done));
  }
  Status add_results(const AttachTarget& target, SessionList* list) const override {
    return core_.sessions.add_results(target.session, list->boundary, target.from, target.bytes_max, list);
  }
  const Access& access() const override { return core_.access; }
  Access::Table durable_access() override {
    Position at;
    return core_.access.answered(core_.answered, &at);
  }
  TimeUs time_of_day() const override { return core_.time_of_day(); }
  void change_access(std::shared_ptr<Client> client, AccessEdit edit, std::function<void(Result<BatchNumber>)> done,
                     AccessChangeBegins begins) override {
    if (core_.options.read_only) return done(read_only_refusal("ChangeAccess").as_not_run());
    parts_->access.make(client, std::move(edit), std::move(begins), std::move(done));
  }
  void scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) override;
  void list_parked(std::shared_ptr<Client> client, std::uint64_t after_id, std::uint32_t limit,
                   std::function<void(Result<ParkedPage>)> done) override;
  void cancel(std::shared_ptr<Client> client, CancelTarget target,
              std::function<void(Result<std::uint64_t>)> done) override;
  Result<std::unique_ptr<BackupSource>> open_backup() override {
    if (core_.draining.load(std::memory_order_acquire)) return draining().as_not_run();
    return core_.log->open_backup();
  }
  Position answered() const override { return core_.answered.get(); }
  Position durable() const override { return core_.durable.get(); }
  void when_answered(BatchNumber batch, std::function<void()> work) override {
    core_.when_answered(batch, std::move(work));
  }
  Result<std::unique_ptr<LogReader>> open_log_reader() override {
    if (core_.draining.load(std::memory_order_acquire)) return draining().as_not_run();
    return core_.log->open_reader();
  }
  Incarnation incarnation() const override { return core_.incarnation; }
  DatabaseStatus status() const override;
  const CoreMetrics& metrics() const override { return core_.metrics; }
  HotKeys hot_keys(KeyUse use, std::size_t limit) const override {
    return core_.hot_keys.top(use, limit, core_.environment.clock->monotonic_us());
  }
  std::vector<SessionInfo> list_sessions(std::size_t limit) const override {
    return core_.sessions.largest(limit, core_.environment.clock->monotonic_us());
  }
  void probe(std::function<void()> done) override {
    parts_->execute.post(nullptr,
                         [this, done = std::move(done)] { core_.when_answered(core_.executed.batch(), done); });
  }
  std::vector<SlowTransaction> slow_transactions() const override { return core_.slow.latest(); }
  void drain(std::function<void()> answered, std::function<void()> done) override;

 private:
  Status check_clock(TimeUs last_stamp_us) const;
  std::vector<MemoryOwner> memory(const DatabaseStatus& status) const;
  void spawn_workers();
  void read_page(const ScanRequest& request, const std::function<void(Result<ScanPage>)>& done);
  struct ParkedList {  // that a client has asked for
    std::shared_ptr<Client> client;
    std::uint64_t after_id;
    std::uint32_t limit;
    ParkedPage page;
    std::uint64_t bytes = 0;  // of the page
    std::function<void(Result<ParkedPage>)> done;
  };
  void list_some(const std::shared_ptr<ParkedList>& list);

  CoreContext core_;
  Admission admission_;
  InFlight scans_, commands_;
  std::atomic<std::uint64_t> page_bytes_{0};  // of pages that are not answered: of scans, and of lists
  double recovery_seconds_ = 0;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<Worker> executor_worker_, log_worker_, answer_worker_, checkpoint_worker_;
};

Status CoreDatabase::start(Recovery::EngineFactory create_engine) {
  const TimeUs begin = core_.environment.clock->monotonic_us();
  Recovery recovery(core_.environment.clock, std::move(create_engine), &core_.sessions, &core_.data,
                    core_.events.recovering);
  const Result<RecoveredPosition> position = core_.log->recover(&recovery);
  if (!position.ok()) return position.status();
  if (Status status = recovery.finish(*position); !status.ok()) return status;
  if (Status status = check_clock(position->time_us); !status.ok()) return status;
  if (Status status = core_.log->end_recovery(); !status.ok()) return status;
  core_.log->watch_sessions([this] { return core_.sessions.stored_bytes(); });
  core_.engine = recovery.take_engine();
  core_.data.set_held(core_.engine->memory());
  core_.counters.next_expiry_us = core_.engine->next_expiry();
  core_.secret = recovery.secret();
  core_.incarnation = recovery.incarnation();
  core_.queue.recovered_value(recovery.largest_value());
  core_.access.recovered(recovery.take_access());
  const Position at{position->batch, position->next_version, position->tombstone_floor, position->time_us,
                    position->state_hash};
  core_.note_stamp(std::max(core_.environment.clock->wall_us(), position->time_us));
  core_.executed.set(at);
  core_.durable.set(at);
  core_.answered.set(at);
  recovery_seconds_ = static_cast<double>(core_.environment.clock->monotonic_us() - begin) * 1e-6;
  Position checkpoint = at;
  checkpoint.batch = position->checkpoint_batch;
  parts_ = std::make_unique<Parts>(&core_, &commands_, checkpoint, recovery.take_dropped());
  spawn_workers();
  return {};
}

// Stamps never go back. So a clock that is far ahead at the start would put the database ahead for ever.
Status CoreDatabase::check_clock(TimeUs last_stamp_us) const {
  const DurationUs gap_us = core_.environment.clock->wall_us() - last_stamp_us;
  const DurationUs gap_us_max = core_.options.clock_gap_us_max;
  if (last_stamp_us == 0 || gap_us <= gap_us_max) return {};  // 0: no batch yet
  const auto days = [](DurationUs us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f days", static_cast<double>(us) / 86400e6);
    return std::string(text);
  };
  return {StatusCode::failed_precondition, ErrorReason::failed,
          "the system clock is " + days(gap_us) + " after the last batch, and --clock-gap-max is " + days(gap_us_max) +
              ". If the clock is wrong, correct it: the time of batches never goes back. If the clock is right, raise "
              "--clock-gap-max for this start"};
}

void CoreDatabase::spawn_workers() {
  Scheduler* scheduler = core_.environment.scheduler;
  Parts* const parts = parts_.get();
  executor_worker_ = scheduler->spawn("executor", [this, parts] {
    const TimeUs step = parts->execute.step();
    const TimeUs wake = std::min(step, parts->monitor.look());
    core_.syncs.look(core_.environment.clock->monotonic_us());
    return wake;
  });
  log_worker_ = scheduler->spawn("log", [parts] { return parts->log.step(); });
  answer_worker_ = scheduler->spawn("answer", [parts] { return parts->answer.step(); });
  checkpoint_worker_ = scheduler->spawn("checkpoint", [parts] { return parts->checkpointer.step(); });
  core_.executor_worker = executor_worker_.get();
  core_.log_worker = log_worker_.get();
  core_.answer_worker = answer_worker_.get();
  core_.checkpoint_worker = checkpoint_worker_.get();
  executor_worker_->notify();
  checkpoint_worker_->notify();
}

void CoreDatabase::scan(ScanRequest request, std::function<void(Result<ScanPage>)> done) {
  if (core_.draining.load(std::memory_order_acquire)) return done(draining().as_not_run());
  if (Status status = scans_.enter(request.client); !status.ok()) return done(std::move(status));
  done = scans_.returning(request.client, std::move(done));
  const std::shared_ptr<Client> client = request.client;
  parts_->execute.post(client,
                       [this, request = std::move(request), done = std::move(done)] { read_page(request, done); });
}

// A command. The page is not shown before its boundary is durable.
void CoreDatabase::read_page(const ScanRequest& request, const std::function<void(Result<ScanPage>)>& done) {
  if (request.is_over && request.is_over()) {
    return done(Status(StatusCode::cancelled, "the client has gone away").as_not_run());
  }
  if (request.login != nullptr) {
    Status allowed = check_read_range(*core_.access.latest(), *request.login, request.from, request.to);
    if (!allowed.ok()) return done(allowed.as_not_run());
  }
  Result<ScanPage> read = parts_->reader.read(request, core_.executed.get());
  if (!read.ok()) return done(read.status());
  auto page = std::make_shared<ScanPage>(std::move(*read));
  const std::uint64_t bytes = page->memory_bytes();
  page_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  core_.when_answered(std::max(page->boundary, core_.access.last_change()), [this, bytes, page, done] {
    done(std::move(*page));
    page_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  });
}

// A list takes as much memory as a page of a scan, so it counts as one.
void CoreDatabase::list_parked(std::shared_ptr<Client> client, std::uint64_t after_id, std::uint32_t limit,
                               std::function<void(Result<ParkedPage>)> done) {
  if (core_.draining.load(std::memory_order_acquire)) return done(draining().as_not_run());
  if (Status status = scans_.enter(client); !status.ok()) return done(std::move(status));
  done = scans_.returning(client, std::move(done));
  auto list = std::make_shared<ParkedList>(ParkedList{std::move(client), after_id, limit, {}, 0, std::move(done)});
  parts_->execute.post(list->client, [this, list] { list_some(list); });
}

// A command, and for a long list several. The answer worker makes the answer, because that takes time, too.
void CoreDatabase::list_some(const std::shared_ptr<ParkedList>& list) {
  std::vector<ParkedTransaction>& listed = list->page.parked;
  const auto wanted = static_cast<std::uint32_t>(list->limit - listed.size()) + 1;  // one more shows whether to go on
  auto [next, has_more] = parts_->waiting.list(list->after_id, std::min(wanted, kListedAtOnce));
  const std::uint64_t bytes_before = list->bytes;
  for (ParkedTransaction& parked : next) {
    const std::uint64_t bytes = sizeof parked + parked.guard_key.size() + parked.client.size();
    list->page.more =
        listed.size() == list->limit || (!listed.empty() && list->bytes + bytes > core_.options.scan_bytes_max);
    if (list->page.more) break;
    list->after_id = parked.id;
    list->bytes += bytes;
    listed.push_back(std::move(parked));
  }
  page_bytes_.fetch_add(list->bytes - bytes_before, std::memory_order_relaxed);
  if (has_more && !list->page.more) return parts_->execute.post(list->client, [this, list] { list_some(list); });
  core_.when_answered(std::max(core_.answered.batch(), core_.access.last_change()), [this, list] {
    list->done(std::move(list->page));
    page_bytes_.fetch_sub(list->bytes, std::memory_order_relaxed);
  });
}

void CoreDatabase::cancel(std::shared_ptr<Client> client, CancelTarget target,
                          std::function<void(Result<std::uint64_t>)> done) {
  if (core_.draining.load(std::memory_order_acquire)) return done(draining().as_not_run());
  // What it names counts in the queue until it is answered. The target may be copied once on its way.
  const std::uint64_t bytes = 2 * target.indices.size() * sizeof(target.indices[0]);
  if (Status status = core_.queue.charge_bytes(client.get(), bytes); !status.ok()) {
    return done(status.as_not_run());
  }
  if (Status status = commands_.enter(client); !status.ok()) {
    core_.queue.release_bytes(client.get(), bytes);
    return done(std::move(status));
  }
  done = [this, client, bytes, done = commands_.returning(client, std::move(done))](Result<std::uint64_t> cancelled) {
    core_.queue.release_bytes(client.get(), bytes);
    done(std::move(cancelled));
  };
  std::sort(target.indices.begin(), target.indices.end());  // may take milliseconds, which the executor does not have
  target.caller = client;
  const auto shared = std::make_shared<CancelTarget>(std::move(target));  // a command may be copied
  parts_->execute.post(client, [this, shared, done = std::move(done)] {
    parts_->waiting.cancel(std::move(*shared), core_.time_of_day(), done);
  });
}

void CoreDatabase::drain(std::function<void()> answered, std::function<void()> done) {
  if (core_.draining.exchange(true)) return;
  auto end = [this, answered = std::move(answered), done = std::move(done)] {
    answered();
    parts_->checkpointer.request(done);
  };
  parts_->execute.post(nullptr, [this, end = std::move(end)] { parts_->execute.drain(end); });
}

// What each owner holds, beside its bound.
std::vector<MemoryOwner> CoreDatabase::memory(const DatabaseStatus& status) const {
  const engine::EngineMemory data = core_.data.held();
  const std::uint64_t of_engine = std::max<std::uint64_t>(status.engine.memory_bytes, data.sum());
  std::vector<MemoryOwner> owners = memory_bounds(core_.options);
  const std::map<std::string_view, std::uint64_t> held = {
      {"table", data.table_bytes},
      {"keys", data.key_bytes},
      {"index", data.index_bytes},
      {"values", data.value_bytes},
      {"queue", status.queued_bytes},
      {"parked", status.parked_bytes},
      {"sessions", core_.sessions.stored_bytes() + status.sessions * kSessionBytes},
      {"uploads", status.uploads_bytes},
      {"access", kAccessCopies * core_.access.latest()->bytes()},
      {"snapshots", parts_->reader.image_bytes()},
      {"scans", page_bytes_.load(std::memory_order_relaxed)},
      {"dropped", parts_->checkpointer.dropped_bytes()},
      {"batches", core_.batch_bytes.load(std::memory_order_relaxed) + core_.requests.bytes() + core_.batches.bytes() +
                      (of_engine - data.sum())}};
  for (MemoryOwner& owner : owners) owner.bytes = held.at(owner.name);
  return owners;
}

DatabaseStatus CoreDatabase::status() const {
  DatabaseStatus status;
  status.state = core_.stopped.load()    ? DatabaseStatus::State::stopped
                 : core_.draining.load() ? DatabaseStatus::State::draining
                                         : DatabaseStatus::State::ready;
  const Position durable = core_.durable.get();
  status.executed_batch = core_.executed.batch();
  status.durable_batch = durable.batch;
  status.checkpoint_batch = parts_->checkpointer.last_batch();
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
  status.expired = counters.expired;
  status.expiry_lag_us = std::max<DurationUs>(core_.time_of_day() - counters.next_expiry_us, 0);
  status.batches_serial = counters.batches_serial;
  status.batches_parallel = counters.batches_parallel;
  status.batches_on_device = counters.batches_on_device;
  status.shadow_batches = counters.shadow_batches;
  status.shadow_skipped = counters.shadow_skipped;
  status.queued_transactions = core_.queue.transactions();
  status.queued_bytes = core_.queue.bytes();
  status.parked = parts_->waiting.parked();
  status.parked_bytes = parts_->waiting.parked_bytes();
  status.sessions = core_.sessions.count();
  status.uploads = core_.sessions.upload_counts().uploads;
  status.uploads_bytes = core_.sessions.upload_counts().bytes.held();
  status.engine = parts_->monitor.stats();
  status.device = parts_->monitor.device();
  status.log = core_.log->usage();
  if (status.log.since_us != 0) status.log_kept_us = std::max<DurationUs>(core_.time_of_day() - status.log.since_us, 0);
  status.memory = memory(status);
  status.recovery_seconds = recovery_seconds_;
  const TimeUs now = core_.environment.clock->monotonic_us();
  status.execution_running_seconds = core_.metrics.executes.seconds(now);
  status.append_running_seconds = core_.metrics.appends.seconds(now);
  status.checkpoint_running_seconds = core_.metrics.checkpoints.seconds(now);
  status.checkpoint_age_seconds = core_.metrics.without_checkpoint.seconds(now);
  status.abandoned = counters.abandoned;
  status.slow = core_.slow.counts();
  status.incarnation = core_.incarnation;
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
