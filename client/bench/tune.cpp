// Role: see tune.hpp.
#include "client/bench/tune.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "client/bench/report.hpp"
#include "client/command_line/interrupt.hpp"
#include "client/measure/clock.hpp"
#include "client/measure/steady_scan.hpp"
#include "client/measure/text.hpp"
#include "client/own_server/server_process.hpp"
#include "client/own_server/temporary_folder.hpp"

namespace kilokv::bench {
namespace {

namespace interrupt = client::interrupt;
using own_server::ServerProcess;
using own_server::TemporaryFolder;

constexpr std::int64_t kBesideRunUs = 600'000;     // to connect, and to check the state before and after a run
constexpr std::int64_t kRestartUs = 500'000;       // of the own server
constexpr std::int64_t kLoadUs = 3'000'000;        // of the initial records
constexpr std::int64_t kSlackUs = 30'000'000;      // beside twice the estimate
constexpr std::uint64_t kOwnWaitUs = 120'000'000;  // until the own server has recovered

class Tuner {
 public:
  Tuner(const TuneOptions& options, const ProgressLine& progress) : options_(options), progress_(progress) {}

  client::Expected<TuneReport> run();

 private:
  client::Error start_server(const RunOptions& point);
  client::Error make_round(std::uint32_t round);
  client::Error measure(RunOptions point, std::uint32_t round);
  bool is_over();
  void tell(const RunReport& report);

  const TuneOptions options_;
  const ProgressLine& progress_;
  const std::int64_t begin_us_ = steady_now_us();
  TuneReport report_;
  std::unique_ptr<TemporaryFolder> folder_;  // removed after the server has ended
  std::unique_ptr<ServerProcess> server_;
};

client::Expected<TuneReport> Tuner::run() {
  interrupt::hold();  // from now on there may be a server to end, and a folder to remove
  report_.options = options_;
  for (std::uint32_t round = 1; round <= options_.rounds && !is_over(); ++round) {
    if (client::Error error = make_round(round)) {
      if (interrupt::received() == 0) {
        if (server_) error.message += "; the last line of the server's log: " + server_->last_log_line();
        return error;
      }
      report_.interrupted_by = interrupt::received();
    }
  }
  return std::move(report_);
}

bool Tuner::is_over() {
  if (interrupt::received() != 0) report_.interrupted_by = interrupt::received();
  if (!report_.runs.empty() && steady_now_us() - begin_us_ > time_limit_of(options_)) report_.out_of_time = true;
  return report_.interrupted_by != 0 || report_.out_of_time || !report_.failure.empty();
}

// Starts the own server, or starts it again if the point needs other flags.
client::Error Tuner::start_server(const RunOptions& point) {
  std::vector<std::string> flags = {"--http-listen", "off"};
  if (point.server_batch_max != 0) {
    flags.insert(flags.end(), {"--batch-max-transactions", std::to_string(point.server_batch_max)});
  }
  if (!server_) {
    auto folder = TemporaryFolder::make("kilokv-tune");
    if (!folder) return folder.error();
    folder_ = std::move(*folder);
    auto server = ServerProcess::start(options_.server, folder_->path(), flags);
    if (!server) return server.error();
    server_ = std::move(*server);
    progress_("started a server for the tune at " + server_->endpoint() + ", with its data in " + folder_->path());
    return {};
  }
  if (!options_.varies_server) return {};
  server_->stop();
  return server_->start_again(flags);
}

client::Error Tuner::make_round(std::uint32_t round) {
  for (const std::size_t place : order_of_round(options_.points.size(), options_.points.front().workload.seed, round)) {
    if (is_over()) return {};
    if (client::Error error = measure(options_.points[place], round)) return error;
  }
  if (report_.interrupted_by == 0 && report_.failure.empty()) report_.rounds = round;
  return {};
}

client::Error Tuner::measure(RunOptions point, std::uint32_t round) {
  if (!options_.server.empty()) {
    if (client::Error error = start_server(point)) return error;
    point.server = {};
    point.server.endpoint = server_->endpoint();
    point.server.wait_for_server_us = kOwnWaitUs;
  }
  const bool is_first = report_.runs.empty();
  point.load = point.load && is_first;
  point.reset = point.reset && is_first;
  const auto quiet = [](const std::string&) {};
  auto made = bench::run(point, is_first ? progress_ : quiet);
  if (!made) return made.error();
  made->repeat = round;
  if (made->interrupted_by != 0) report_.interrupted_by = made->interrupted_by;
  report_.failure = made->failure;
  tell(*made);
  report_.runs.push_back(std::move(*made));
  return {};
}

void Tuner::tell(const RunReport& report) {
  progress_("round " + std::to_string(report.repeat) + " of " + std::to_string(options_.rounds) + ", " +
            size_flag(options_) + " " + grouped(size_of(options_, report.options)) + ": " +
            grouped(static_cast<std::uint64_t>(committed_per_s(report))) + " committed/s, p99 " +
            short_duration(report.measured.latency_us.quantile(0.99)));
}

}  // namespace

std::uint32_t size_of(const TuneOptions& options, const RunOptions& point) {
  return options.varies_server ? point.server_batch_max : point.batch_size;
}

const char* size_flag(const TuneOptions& options) {
  return options.varies_server ? "--batch-max-transactions" : "--batch-size";
}

std::int64_t estimated_us(const TuneOptions& options) {
  std::int64_t round_us = 0;
  for (const RunOptions& point : options.points) {
    round_us += point.warmup_us + point.duration_us + kBesideRunUs + (options.varies_server ? kRestartUs : 0);
  }
  return kLoadUs + options.rounds * round_us;
}

std::int64_t time_limit_of(const TuneOptions& options) {
  return options.time_limit_us != 0 ? options.time_limit_us : 2 * estimated_us(options) + kSlackUs;
}

std::vector<std::size_t> order_of_round(std::size_t points, std::uint64_t seed, std::uint32_t round) {
  std::vector<std::size_t> order(points);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::seed_seq seeds{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), round};
  std::mt19937 random(seeds);
  // By hand, because the order of std::shuffle differs between libraries.
  for (std::size_t left = points; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  return order;
}

std::vector<SizeResults> results_by_size(const TuneReport& report) {
  std::vector<SizeResults> sizes;
  for (const RunOptions& point : report.options.points) {
    SizeResults one;
    one.size = size_of(report.options, point);
    for (const RunReport& run : report.runs) {
      if (run.repeat > report.rounds || size_of(report.options, run.options) != one.size) continue;
      one.per_s.push_back(committed_per_s(run));
      one.p99_us.push_back(static_cast<double>(run.measured.latency_us.quantile(0.99)));
    }
    sizes.push_back(std::move(one));
  }
  return sizes;
}

client::Expected<TuneReport> tune(const TuneOptions& options, const ProgressLine& progress) {
  return Tuner(options, progress).run();
}

}  // namespace kilokv::bench
