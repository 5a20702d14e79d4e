// Role: see run.hpp.
#include "client/bench/run.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/bench/call_driver.hpp"
#include "client/bench/report.hpp"
#include "client/bench/reset.hpp"
#include "client/bench/stream_driver.hpp"
#include "client/command_line/interrupt.hpp"
#include "client/measure/clock.hpp"
#include "client/measure/steady_scan.hpp"
#include "client/measure/text.hpp"

namespace kilokv::bench {
namespace {

namespace interrupt = client::interrupt;

constexpr std::int64_t kProgressIntervalUs = 1'000'000;
constexpr std::int64_t kInterruptLookUs = 50'000;  // short enough for a user

class Runner {
 public:
  Runner(const RunOptions& options, const ProgressLine& progress) : options_(options), progress_(progress) {}

  client::Expected<RunReport> run() {
    for (const auto step :
         {&Runner::connect, &Runner::reset, &Runner::load, &Runner::check_before, &Runner::open_history}) {
      if (interrupt::received() != 0) return make_error(client::ErrorCode::cancelled, "ended before the run began");
      if (const client::Error error = (this->*step)()) return error;
    }
    if (const client::Error error = make_drivers()) return error;
    drive();
    collect();
    close_history();
    if (const client::Error error = check_after()) return error;
    return std::move(report_);
  }

 private:
  client::Error connect();
  client::Error reset();
  client::Error load();
  client::Error check_before();
  client::Error open_history();
  client::Error make_drivers();
  void drive();
  void look_for_interrupt();
  void look_at_cpu();
  void collect();
  void close_history();
  client::Error check_after();
  std::string progress_line(const Tally& interval, std::int64_t now_us);
  void end_interval();
  client::Expected<engine::Workload> workload(std::uint64_t stream) const;

  const RunOptions options_;
  const ProgressLine& progress_;
  RunReport report_;
  std::unique_ptr<client::Client> client_;
  std::vector<std::unique_ptr<client::Session>> sessions_;
  std::unique_ptr<HistoryLog> history_;
  Window window_;
  std::vector<std::unique_ptr<Driver>> drivers_;
  std::int64_t last_progress_us_ = 0;
  ServerFound found_;
  std::optional<CpuTimes> cpu_begin_, cpu_end_;  // of the measured part
  std::optional<Sampler> sampler_;
};

client::Expected<engine::Workload> Runner::workload(std::uint64_t stream) const {
  engine::WorkloadOptions with_stream = options_.workload;
  with_stream.stream = stream;
  auto made = engine::Workload::create(with_stream);
  if (!made.ok()) return make_error(client::ErrorCode::invalid_argument, made.status().message());
  return std::move(*made);
}

client::Error Runner::connect() {
  report_.options = options_;
  client::ClientOptions client_options = options_.server;
  client_options.connections = options_.connections;
  client_options.request_timeout_us = static_cast<std::uint64_t>(options_.give_up_after_us);
  auto client = client::Client::connect(client_options);
  if (!client) return client.error();
  client_ = std::move(*client);
  // The lease is longer than any restart that the run survives.
  const client::SessionOptions session_options{
      .lease_us = static_cast<std::uint64_t>(2 * options_.give_up_after_us + 60'000'000),
      .requests_in_flight_max = options_.in_flight + 1};
  for (std::uint32_t i = 0; i < options_.connections; ++i) {
    auto session = client_->open_session(session_options);
    if (!session) return session.error();
    sessions_.push_back(std::move(*session));
  }
  auto status = client_->status();
  if (!status) return status.error();
  report_.server = std::move(*status);
  found_ = find_listener(options_.server.endpoint);
  return {};
}

client::Error Runner::reset() {
  if (!options_.reset) return {};
  auto generator = workload(0);
  if (!generator) return generator.error();
  const auto done = delete_records(sessions_.front().get(), *generator, options_);
  if (!done) return done.error();
  progress_("deleted the old records in " + grouped(done->transactions) + " transactions, " +
            seconds(done->elapsed_us));
  return {};
}

client::Error Runner::load() {
  if (!options_.load) return {};
  auto generator = workload(0);
  if (!generator) return generator.error();
  auto loaded = load_initial_records(sessions_.front().get(), *generator, options_);
  if (!loaded) return loaded.error();
  report_.load = *loaded;
  progress_("loaded " + grouped(loaded->written) + " records in " + seconds(loaded->elapsed_us) + ", " +
            grouped(loaded->there_already) + " were there");
  return {};
}

// A database that other runs have used must still fit this workload. Otherwise the check at the end would blame this
// run.
client::Error Runner::check_before() {
  if (options_.load && report_.load.there_already == 0) return {};
  auto generator = workload(0);
  if (!generator) return generator.error();
  const auto state = check_state(client_.get(), *generator, options_.give_up_after_us);
  if (!state) return state.error();
  if (state->violation.empty()) return {};
  return make_error(client::ErrorCode::failed_precondition,
                    "the database does not hold the data of workload " + options_.workload.name +
                        " with these options: before the run, " + state->violation +
                        ". Use the --keys and options that filled it, or a fresh database");
}

client::Error Runner::open_history() {
  if (options_.history_path.empty()) return {};
  auto history = HistoryLog::open(options_, config_text(options_), client_.get());
  if (!history) return history.error();
  history_ = std::move(*history);
  return {};
}

client::Error Runner::make_drivers() {
  sampler_.emplace(client_.get(), found_);  // it asks the server, so before anything is due
  const std::int64_t now_us = steady_now_us();
  sampler_->start_at(now_us);
  window_ = {now_us, now_us + options_.warmup_us, now_us + options_.warmup_us + options_.duration_us};
  report_.measured_us = options_.duration_us;
  const std::uint32_t drivers = options_.connections * (options_.unary ? options_.in_flight : 1);
  for (std::uint32_t i = 0; i < drivers; ++i) {
    auto generator = workload(i);
    if (!generator) return generator.error();
    if (options_.unary) {
      drivers_.push_back(std::make_unique<CallDriver>(options_, std::move(*generator), window_, i, client_.get()));
    } else {
      drivers_.push_back(std::make_unique<StreamDriver>(options_, std::move(*generator), window_, i, sessions_[i].get(),
                                                        history_.get()));
    }
  }
  return {};
}

void Runner::drive() {
  std::vector<std::future<void>> running;
  for (const auto& driver : drivers_) {
    running.push_back(std::async(std::launch::async, [&driver] { driver->run(); }));
  }
  interrupt::hold();
  std::int64_t tick_us = window_.start_us;
  last_progress_us_ = window_.start_us;
  while (!running.empty()) {
    // From now on, if the last line took longer than an interval.
    tick_us = std::max(tick_us, steady_now_us()) + kProgressIntervalUs;
    while (!running.empty() && steady_now_us() < tick_us) {
      look_for_interrupt();
      look_at_cpu();
      const auto look = at_steady_us(std::min(tick_us, steady_now_us() + kInterruptLookUs));
      while (!running.empty() && running.back().wait_until(look) == std::future_status::ready) running.pop_back();
    }
    end_interval();
  }
  look_at_cpu();
  if (cpu_begin_ && cpu_end_) {
    report_.cpu = cpu_between(*cpu_begin_, *cpu_end_, found_.place, machine_cores(), own_cores());
  }
}

void Runner::look_at_cpu() {
  const std::int64_t now_us = steady_now_us();
  if (!cpu_begin_ && now_us >= window_.begin_us) cpu_begin_ = read_cpu_times(found_.pid);
  if (cpu_begin_ && !cpu_end_ && now_us >= window_.end_us) cpu_end_ = read_cpu_times(found_.pid);
}

void Runner::look_for_interrupt() {
  if (report_.interrupted_by != 0 || interrupt::received() == 0) return;
  report_.interrupted_by = interrupt::received();
  window_.end_us = std::min(window_.end_us, steady_now_us());
  report_.measured_us = std::max<std::int64_t>(0, window_.end_us - window_.begin_us);
  for (const auto& driver : drivers_) driver->end_at(window_.end_us);
}

void Runner::end_interval() {
  const std::int64_t now_us = steady_now_us();
  Tally interval;
  for (const auto& driver : drivers_) interval.merge(driver->take_interval());
  progress_(progress_line(interval, now_us));
  sampler_->take(interval, now_us);
}

std::string Runner::progress_line(const Tally& interval, std::int64_t now_us) {
  const double interval_s = static_cast<double>(std::max<std::int64_t>(1, now_us - last_progress_us_)) / 1e6;
  last_progress_us_ = now_us;
  const auto rate = [&](client::Outcome outcome) {
    return grouped(static_cast<std::uint64_t>(static_cast<double>(interval.counts.of(outcome)) / interval_s)) + "/s";
  };
  std::string line = seconds(now_us - window_.start_us, 1);
  if (now_us < window_.begin_us) line += " (warm-up)";
  if (now_us >= window_.end_us) line += " (the last answers)";
  line += "  committed " + rate(client::Outcome::committed) + "  guard failed " + rate(client::Outcome::guard_failed);
  if (interval.counts.of(client::Outcome::wait_expired) != 0) {
    line += "  expired " + rate(client::Outcome::wait_expired);
  }
  line += "  p50 " + short_duration(interval.latency_us.quantile(0.5));
  line += "  p99 " + short_duration(interval.latency_us.quantile(0.99));
  if (interval.counts.retries != 0) line += "  sent again " + grouped(interval.counts.retries);
  return line;
}

void Runner::collect() {
  report_.batches = sampler_->server();
  report_.samples = sampler_->samples();
  for (const auto& driver : drivers_) {
    report_.measured.merge(driver->measured());
    report_.whole.merge(driver->whole());
    if (report_.failure.empty()) report_.failure = driver->first_error();
  }
  if (report_.whole.unknown != 0) {
    report_.failure = "the fate of " + grouped(report_.whole.unknown) + " transactions is unknown: " + report_.failure;
  } else if (report_.whole.errors != 0) {
    report_.failure = "the server refused " + grouped(report_.whole.errors) + " transactions: " + report_.failure;
  }
}

// Before the check, which can fail: a history that is not whole must be told in any case.
void Runner::close_history() {
  if (history_ == nullptr) return;
  const std::string failure = history_->close();
  if (failure.empty()) return;
  report_.failure += (report_.failure.empty() ? "" : "; ") + failure;
}

client::Error Runner::check_after() {
  auto generator = workload(0);
  if (!generator) return generator.error();
  auto state = check_state(client_.get(), *generator, options_.give_up_after_us);
  if (!state) {
    if (report_.interrupted_by == 0) return state.error();
    // The measured numbers can still be reported.
    report_.failure += (report_.failure.empty() ? "" : "; ") + ("the check did not run: " + state.error().message);
    return {};
  }
  report_.checked = true;
  report_.state = std::move(*state);
  if (!report_.state.violation.empty()) {
    report_.failure = "INVARIANT VIOLATED: " + report_.state.statement + ": " + report_.state.violation;
  }
  return {};
}

}  // namespace

client::Expected<RunReport> run(const RunOptions& options, const ProgressLine& progress) {
  return Runner(options, progress).run();
}

}  // namespace kilokv::bench
