// kilokvd: connects options, log, storage, engine, database and service. Only this file knows every part.
//
// The steps of a run: open the port (requests get UNAVAILABLE, "recovering") -> recover -> ready -> signal -> drain ->
// end. When durability is lost, the process ends at once and sends no more answers.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "server/config.hpp"
#include "server/core/fail_point.hpp"
#include "server/core/metrics.hpp"
#include "server/core/one_line.hpp"
#include "server/core/shown_key.hpp"
#include "server/core/threads.hpp"
#include "server/core_dumps.hpp"
#include "server/event_log.hpp"
#include "server/last_words.hpp"
#include "server/log_format.hpp"
#include "server/machine_memory.hpp"
#include "server/memory_plan.hpp"
#include "server/page_server.hpp"
#include "server/service/audit_log.hpp"
#include "server/service/bootstrap.hpp"
#include "server/service/grpc_server.hpp"
#include "server/service/library_logs.hpp"
#include "server/service_manager.hpp"
#include "server/shutdown_signal.hpp"
#include "server/start_check.hpp"
#include "server/storage/rocksdb_log.hpp"
#include "server/text_log.hpp"
#include "server/version.hpp"
#include "server/watchdog.hpp"

namespace kilokv::server {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
// Time for gRPC to send the last answers after draining. The server waits the whole time if a client keeps an idle
// connection open and does not read from it.
constexpr std::chrono::milliseconds kSendGrace{1000};
// While the start makes progress, the service manager gives it this much more time. A step that takes longer without a
// word, such as a sync that does not return, uses up the time that the unit sets.
constexpr DurationUs kStartStepUs = 120000000;
// From the end of draining to the end of the process.
constexpr DurationUs kEndUs = 10000000;
// Probes in the time after which the service manager ends a server that is not alive.
constexpr DurationUs kProbesPerWatchdog = 4;

// Returns the log file, or null if the log goes to standard error.
Result<std::shared_ptr<TextLog>> start_logging(const ServerOptions& options) {
  std::shared_ptr<TextLog> file;
  if (!options.log_file.empty()) {
    Result<std::shared_ptr<TextLog>> opened = TextLog::open(options.log_file);
    if (!opened.ok()) return opened;
    file = *opened;
  }
  auto logger =
      file != nullptr ? std::make_shared<spdlog::logger>("kilokvd", file) : spdlog::stderr_color_mt("kilokvd");
  logger->set_formatter(make_log_formatter(options.log_format));
  logger->set_level(spdlog::level::from_str(options.log_level));
  logger->flush_on(spdlog::level::info);
  // Into the same file, at every level of the log.
  auto audit = std::make_shared<spdlog::logger>(kAuditLogger, logger->sinks().begin(), logger->sinks().end());
  audit->flush_on(spdlog::level::info);
  spdlog::register_logger(std::move(audit));
  spdlog::set_default_logger(std::move(logger));
  return file;
}

// What to do on signals that do not end the process. The function holds the logger, because it may run while main()
// ends.
std::function<void(int)> other_signals(std::shared_ptr<TextLog> file) {
  return [file = std::move(file), logger = spdlog::default_logger()](int signal) {
    if (signal != SIGHUP) {
      logger->info(
          "kilokvd ignores signal={}: it has no meaning here; SIGHUP opens the log file again, SIGTERM ends kilokvd",
          signal);
    } else if (file == nullptr) {
      logger->info(
          "kilokvd ignores SIGHUP: the log goes to standard error; with --log-file, SIGHUP opens that file again");
    } else if (const Status status = file->reopen(); status.ok()) {
      logger->info("kilokvd has opened its log file again log_file=\"{}\"", one_line(file->path()));
    } else {
      logger->error("kilokvd keeps its old log file error=\"{}\"", one_line(status.message()));
    }
  };
}

// Writes a draft and renames it, so that a reader of the file always finds a whole port number.
Status write_port_file(const std::string& path, int port) {
  const std::string draft = path + ".new";
  errno = 0;
  std::ofstream file(draft);
  file << port << '\n';
  file.close();
  if (file.good() && std::rename(draft.c_str(), path.c_str()) == 0) return {};
  return Status(StatusCode::invalid_argument,
                "--port-file: cannot write " + path + ": " + std::generic_category().message(errno));
}

// A message that the service manager does not take is no reason to stop: clients are served without it.
void note(const Status& told) {
  if (!told.ok()) spdlog::warn("kilokvd cannot reach the service manager error=\"{}\"", one_line(told.message()));
}

std::string text_of(const RecoveryProgress& progress) {
  const std::string records = std::to_string(progress.records) + " records of the checkpoint";
  if (progress.counting) return "recovering: counted " + records;
  if (progress.batch == 0) return "recovering: loaded " + records;
  return "recovering: loaded " + records + ", and the log up to batch " + std::to_string(progress.batch);
}

int exit_code_of(const Status& status) { return status.code() == StatusCode::data_loss ? kExitDataLoss : kExitFailure; }

[[noreturn]] void end_after_fatal(const Status& status) {
  spdlog::critical("kilokvd fatal code={} error=\"{}\" action=\"ending without answering\"", to_string(status.code()),
                   one_line(status.message()));
  spdlog::default_logger()->flush();
  std::_Exit(exit_code_of(status));
}

void warn_of_lost_device(const engine::EngineDevice& now) {
  spdlog::warn("kilokvd has lost its device: batches run on {} device_reason=\"{}\"", now.name, now.reason);
}

void log_clock_change(const ClockChange& change) {
  const double seconds = static_cast<double>(change.by_us) * 1e-6;
  switch (change.kind) {
    case ClockChange::Kind::in_step:
      spdlog::info("kilokvd follows the system clock again stamp_us={}", change.stamp_us);
      return;
    case ClockChange::Kind::jumped:
      spdlog::warn("kilokvd follows a jump of the system clock ahead_seconds={:.3f} stamp_us={}", seconds,
                   change.stamp_us);
      return;
    case ClockChange::Kind::ahead:
      spdlog::error(
          "kilokvd does not follow the system clock, which jumped ahead by more than --clock-jump-max "
          "ahead_seconds={:.3f} stamp_us={} action=\"correct the clock; if it is right, start kilokvd again\"",
          seconds, change.stamp_us);
      return;
    case ClockChange::Kind::behind:
      spdlog::warn(
          "kilokvd goes on without the system clock, which is behind the time of the last batch behind_seconds={:.3f} "
          "stamp_us={}",
          -seconds, change.stamp_us);
      return;
  }
}

ServerInfo info_of(const ServerOptions& options) {
  const engine::EngineOptions& engine = options.engine;
  std::vector<std::pair<std::string, std::string>> settings = {{"order", engine.order}};
  for (const engine::SettingInfo& info : engine::strategy_settings()) {
    if (info.setting.for_measuring) continue;
    std::string field = info.setting.name;
    std::replace(field.begin(), field.end(), '-', '_');
    settings.emplace_back(std::move(field), engine.settings.at(info.setting.name));
  }
  settings.emplace_back("validation", engine.validation);
  settings.emplace_back("validation_lanes", engine.validation_lanes);
  return {.version = kVersion,
          .strategy = engine.strategy,
          .threads = engine.threads,
          .shadow_rate = options.database.shadow_rate,
          .read_only = options.database.read_only,
          .memory_limit = options.database.memory_limit,
          .storage_bound = storage_bound_of(options),
          .http_bound = http_bound_of(options),
          .process_bytes = kProcessBytes,
          .settings = std::move(settings)};
}

// What a person who reads the log has to know of this start.
void log_start(const ServerOptions& options) {
  spdlog::info("kilokvd starts version={} commit={} process={}", kVersion, kCommit, ::getpid());
  std::string settings;
  for (const auto& [name, value] : options.changed) {
    std::string field = name;
    std::replace(field.begin(), field.end(), '-', '_');
    settings.append(1, ' ').append(field).append(1, '=').append(value);
  }
  if (settings.empty()) {
    spdlog::info("kilokvd has the default of each setting");
  } else {
    spdlog::info("kilokvd has settings that are not the defaults{}", settings);
  }
}

class Server {
 public:
  // `manager` outlives the server.
  Server(const ServerOptions& options, ServiceManager* manager)
      : options_(options),
        manager_(manager),
        events_(*parse_log_keys(options.log_keys), options.storage.data_dir),
        service_(options.service, info_of(options)) {}

  Status open() {
    if (!options_.port_file.empty())
      std::remove(options_.port_file.c_str());  // a file of an earlier run would name a wrong port
    Result<std::unique_ptr<GrpcServer>> grpc = GrpcServer::start(options_.listen, &service_, options_.service);
    if (!grpc.ok()) return grpc.status();
    grpc_ = std::move(*grpc);
    if (grpc_->is_public()) {
      Status status = check_exposure("--listen", options_.listen, grpc_->endpoint(),
                                     "everybody who reaches the port can read and change everything");
      if (!status.ok()) return status;
    }
    if (Status status = open_pages(); !status.ok()) return status;
    grpc_->accept();
    if (page_server_ != nullptr) page_server_->start();  // before the recovery, so that it can be watched
    spdlog::info("kilokvd recovering endpoint={} data_dir=\"{}\" version={} commit={}", grpc_->endpoint(),
                 one_line(options_.storage.data_dir), kVersion, kCommit);
    if (page_server_ != nullptr) {
      spdlog::info("kilokvd serves pages over HTTP http_endpoint={}", page_server_->endpoint());
    }
    log_memory();
    fail_point("server.recovery.begin");  // hang: the server stays in this state
    StorageOptions storage = options_.storage;
    storage.metrics = &log_metrics_;
    note(manager_->starting("opening the files of the database", kStartStepUs));
    events_.add_to(&storage);
    Result<std::unique_ptr<CommitLog>> log = open_rocksdb_log(storage);
    if (!log.ok()) return log.status();
    log_ = std::move(*log);
    return open_database();
  }

  // From here on the server is ready: it must finish all accepted work before it ends.
  Status serve() {
    if (options_.service.login) {
      if (Status status = bootstrap_admin(database_.get(), options_.bootstrap); !status.ok()) return status;
    } else if (!options_.bootstrap.file.empty()) {
      spdlog::warn("kilokvd makes no administrator, because --bootstrap-file has no effect without --login on");
    }
    if (!options_.service.login && !database_->access().latest()->users().empty()) {
      spdlog::warn("kilokvd checks nobody's rights: this database has users, and --login is off");
    }
    service_.serve(database_.get());
    service_.set_serving(true);
    Status status;
    if (!options_.port_file.empty()) status = write_port_file(options_.port_file, grpc_->port());
    if (!status.ok()) return status;
    if (options_.database.read_only) spdlog::warn("kilokvd only reads: it refuses everything that changes data");
    log_ready();
    note(manager_->ready("serving on " + grpc_->endpoint()));
    keep_alive();
    return {};
  }

  // Also after a start that failed while clients had calls open.
  ~Server() {
    watchdog_.reset();
    page_server_.reset();  // the pages look at everything else
    service_.close();      // from here on, no call uses the database
    grpc_.reset();         // ends all calls
    database_.reset();
  }

  // Finishes the accepted work. UNAVAILABLE if this takes longer than the drain timeout. Then some RPCs have not ended,
  // and the process must end without destroying the objects that they use. If only the checkpoint is not finished in
  // time, drain() succeeds: the next start then replays more of the log.
  Status drain() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(options_.drain_timeout_us);
    service_.set_serving(false);
    note(manager_->stopping("finishing accepted work", options_.drain_timeout_us + kEndUs));
    struct Promises {
      std::promise<void> answered, done;
    };
    auto promises = std::make_shared<Promises>();
    std::future<void> answered = promises->answered.get_future(), done = promises->done.get_future();
    database_->drain([promises] { promises->answered.set_value(); }, [promises] { promises->done.set_value(); });
    if (answered.wait_until(end) != std::future_status::ready) {
      return Status(StatusCode::unavailable, ErrorReason::unspecified, "--drain-timeout has passed");
    }
    service_.close();
    if (page_server_ != nullptr) page_server_->end_calls();  // no call may begin on a server that is shut down
    grpc_->shut_down(kSendGrace);
    if (done.wait_until(end) != std::future_status::ready) {
      spdlog::warn(
          "kilokvd ends without a checkpoint because --drain-timeout has passed: the next start replays the log");
    }
    return {};
  }

 private:
  // Other machines reach the port of this setting: then it needs TLS and logins. `power`: what everybody who reaches it
  // can do without logins.
  Status check_exposure(const std::string& setting, const std::string& listen, const std::string& endpoint,
                        const char* power) {
    if (Status status = check_other_machines(options_, setting, listen); !status.ok()) return status;
    const std::string lacks = lacks_for_other_machines(options_.service);
    if (lacks.empty()) return {};
    service_.set_insecure();
    spdlog::warn("kilokvd is insecure: it listens for other machines, and has {}; {} endpoint={}", lacks,
                 options_.service.login ? "whoever sees the network sees tokens and data" : power, endpoint);
    return {};
  }

  Status open_pages() {
    Result<std::unique_ptr<PageServer>> pages = PageServer::open(options_, &service_, grpc_.get(), &log_metrics_);
    if (!pages.ok()) return pages.status();
    page_server_ = std::move(*pages);
    if (page_server_ == nullptr || !page_server_->is_public()) return {};
    return check_exposure("--http-listen", options_.http.http_listen, page_server_->endpoint(),
                          options_.http.console
                              ? "everybody who reaches the port can read and change everything in the console"
                              : "everybody who reaches the port can see the metrics and the status");
  }

  Status open_database() {
    const Environment environment{.clock = &clock_, .random = &random_, .scheduler = &scheduler_};
    const auto create_engine = [this](const engine::KeyHashSecret& secret) {
      engine::EngineOptions engine = options_.engine;
      engine.secret = secret;
      engine.emulated_device_fails = [] { return fail_point("engine.device.call"); };
      return engine::Engine::create(engine);
    };
    DatabaseEvents events;
    events.recovering = [this](const RecoveryProgress& progress) {
      note(manager_->starting(text_of(progress), kStartStepUs));
    };
    events.device_lost = warn_of_lost_device;
    events.clock_changed = log_clock_change;
    events_.add_to(&events);
    Result<std::unique_ptr<Database>> database =
        Database::open(options_.database, environment, log_.get(), create_engine, end_after_fatal, std::move(events));
    if (!database.ok()) return database.status();
    database_ = std::move(*database);
    events_.set_secret(database_->key_secret());
    return {};
  }

  void keep_alive() {
    if (manager_->watchdog_us() == 0) return;
    watchdog_ = std::make_unique<Watchdog>(
        manager_->watchdog_us() / kProbesPerWatchdog,
        [database = database_.get()](std::function<void()> done) { database->probe(std::move(done)); },
        [manager = manager_] { note(manager->alive()); });
  }

  void log_memory() const {
    const DatabaseOptions& core = options_.database;
    const MachineMemory machine = machine_memory();
    spdlog::info("kilokvd memory limit_bytes={} data_bytes={} machine_bytes={} cgroup_bytes={} limit_from={}",
                 core.memory_limit, core.data_bytes_max, machine.machine_bytes, machine.cgroup_bytes,
                 options_.given.contains("memory-limit") ? "--memory-limit" : "default");
    if (machine.usable() != 0 && core.memory_limit > machine.usable()) {
      spdlog::warn("kilokvd has a --memory-limit that is more than the memory that it may use usable_bytes={}",
                   machine.usable());
    }
  }

  void log_ready() const {
    const DatabaseStatus status = database_->status();
    EventLog::recovered(status);
    if (options_.engine.device != "auto" && !status.device.reason.empty()) {
      spdlog::warn("kilokvd does not run its batches on --device {} reason=\"{}\"", options_.engine.device,
                   status.device.reason);
    }
    std::string device = status.device.name;
    if (!status.device.model.empty()) device += " device_model=\"" + status.device.model + '"';
    if (!status.device.reason.empty()) device += " device_reason=\"" + status.device.reason + '"';
    spdlog::info("kilokvd ready endpoint={} strategy={} device={} batch={} records={} recovery_seconds={:.3f}",
                 grpc_->endpoint(), options_.engine.strategy, device, status.durable_batch, status.engine.records,
                 status.recovery_seconds);
  }

  const ServerOptions& options_;
  ServiceManager* const manager_;
  EventLog events_;
  SystemClock clock_;
  SystemRandom random_;
  ThreadScheduler scheduler_;
  LogMetrics log_metrics_;
  // C++ destroys these from the last to the first. The port comes first, so that no RPC is left when the objects that
  // RPCs use are destroyed. The service comes after the database, which may still run callbacks of calls that have
  // ended.
  std::unique_ptr<CommitLog> log_;
  KiloKvService service_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<PageServer> page_server_;
};

// Runs what a start refuses before it touches the data directory or a port. The exit code is that of the start.
int check_config(const ServerOptions& options) {
  if (!options.log_file.empty()) {
    if (const Status status = TextLog::check(options.log_file); !status.ok()) {
      std::fprintf(stderr, "kilokvd: %s\n", status.message().c_str());
      return kExitUsage;
    }
  }
  const auto warn = [](const std::string& what) { std::fprintf(stderr, "kilokvd: warning: %s\n", what.c_str()); };
  if (const Status status = check_start(options, warn); !status.ok()) {
    std::fprintf(stderr, "kilokvd: %s\n", status.message().c_str());
    return exit_code_of(status);
  }
  std::puts("kilokvd: all settings are valid");
  return 0;
}

// For a service that starts with --create never: the database is made once, by hand or by the installation.
int create_database(const ServerOptions& options) {
  const Result<bool> created = create_rocksdb_database(options.storage);
  if (!created.ok()) {
    std::fprintf(stderr, "kilokvd: %s\n", created.status().message().c_str());
    return exit_code_of(created.status());
  }
  std::printf("kilokvd: %s %s\n", options.storage.data_dir.c_str(),
              *created ? "has a new, empty database" : "has a database already, which was not changed");
  return 0;
}

// Says why the server does not start, and returns the exit code. If the log goes to a file, or nowhere, a person who
// starts the server by hand sees it on standard error.
int cannot_start(const ServerOptions& options, const Status& status) {
  if (!options.log_file.empty() || options.log_level == "off") {
    std::fprintf(stderr, "kilokvd: cannot start: %s\n", one_line(status.message()).c_str());
  }
  spdlog::critical("kilokvd cannot start data_dir=\"{}\" code={} error=\"{}\"", one_line(options.storage.data_dir),
                   to_string(status.code()), one_line(status.message()));
  return exit_code_of(status);
}

int run(const ServerOptions& options, ServiceManager* manager) {
  const Result<std::shared_ptr<TextLog>> log_file = start_logging(options);
  if (!log_file.ok()) {
    std::fprintf(stderr, "kilokvd: %s\n", log_file.status().message().c_str());
    return kExitUsage;
  }
  log_last_words(options.storage.data_dir);
  log_start(options);
  if (Status status = set_core_dumps(options.core_dumps); !status.ok()) return cannot_start(options, status);
  take_library_logs();
  ShutdownSignal shutdown(other_signals(*log_file));
  note(manager->problem());
  Server server(options, manager);
  Status status = server.open();
  if (status.ok()) {
    shutdown.arm();
    status = server.serve();
  }
  if (!status.ok()) return cannot_start(options, status);
  const int signal = shutdown.wait();
  spdlog::info("kilokvd draining signal={} timeout_us={}", signal, options.drain_timeout_us);
  status = server.drain();
  if (!status.ok()) {
    spdlog::warn("kilokvd ended before all accepted work was answered reason=\"{}\"", one_line(status.message()));
    std::_Exit(kExitFailure);
  }
  spdlog::info("kilokvd stopped");
  return 0;
}

}  // namespace
}  // namespace kilokv::server

int main(int argc, char** argv) {
  using kilokv::server::CommandLine;
  kilokv::server::block_signals();
  ::umask(S_IRWXG | S_IRWXO);  // the data, the log and their names are for the owner only
  const kilokv::server::ReadEnvironment environment = [](const char* name) {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets a variable
  };
  kilokv::Result<CommandLine> line = kilokv::server::parse_command_line(argc, argv, environment);
  if (!line.ok()) {
    std::fprintf(stderr, "kilokvd: %s\n", line.status().message().c_str());
    return kilokv::server::kExitUsage;
  }
  const kilokv::Status planned =
      line->action == CommandLine::Action::print
          ? kilokv::Status()
          : kilokv::server::plan_memory(kilokv::server::machine_memory().usable(), &line->options);
  if (!planned.ok()) {
    std::fprintf(stderr, "kilokvd: %s\n", planned.message().c_str());
    return kilokv::server::kExitUsage;
  }
  switch (line->action) {
    case CommandLine::Action::print: std::fputs(line->text.c_str(), stdout); return 0;
    case CommandLine::Action::check_config: return kilokv::server::check_config(line->options);
    case CommandLine::Action::create_database: return kilokv::server::create_database(line->options);
    case CommandLine::Action::run: break;
  }
  kilokv::server::ServiceManager manager(environment);
  return kilokv::server::run(line->options, &manager);
}
