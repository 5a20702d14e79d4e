// Role: see options.hpp.
#include "client/bench/options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "client/command_line/arguments.hpp"
#include "client/command_line/secrets.hpp"
#include "client/measure/steady_scan.hpp"
#include "client/own_server/server_process.hpp"

namespace kilokv::bench {
namespace {

client::Error refuse(std::string message) {
  return make_error(client::ErrorCode::invalid_argument, std::move(message));
}

// Each connection has its own generator.
std::vector<std::string> shared_workloads() {
  std::vector<std::string> names;
  for (const engine::WorkloadKind& kind : engine::Workload::kinds()) {
    if (kind.is_shared) names.emplace_back(kind.name);
  }
  return names;
}

constexpr std::uint32_t kBatchSizeMax = 65'536;
constexpr std::uint32_t kServerBatchMax = 1u << 24;  // as kilokvd takes it

struct FlagName {
  WorkloadFlag flag;
  const char* name;
};
constexpr std::array<FlagName, 6> kWorkloadFlags = {{{WorkloadFlag::distribution, "--distribution"},
                                                     {WorkloadFlag::wait_share, "--wait-share"},
                                                     {WorkloadFlag::wait_timeout, "--wait-timeout"},
                                                     {WorkloadFlag::pair_order, "--pair-order"},
                                                     {WorkloadFlag::read_only_share, "--read-only-share"},
                                                     {WorkloadFlag::value_size, "--value-size"}}};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

CLI::Validator distribution() {
  const auto check = [](const std::string& text) {
    return engine::parse_distribution(text).ok() ? std::string() : "\"" + text + "\" is not uniform or zipf:THETA";
  };
  return {check, ""};
}

// A list of pairs is open only while its calls are. With one transaction in a request, pairs stay open across calls. So
// there may be only as many open pairs as the requests in flight can carry; otherwise a closed loop would wait for
// itself.
void fit_pairs(RunOptions* options) {
  engine::SemanticOptions& semantic = options->workload.semantic;
  if (options->batch_size > 1) return;
  semantic.across_calls = true;
  semantic.wait_lag = std::clamp<std::uint32_t>(options->in_flight / 2, 1, semantic.wait_lag);
}

client::Error check(const RunOptions& options) {
  if (options.unary && !options.history_path.empty()) {
    return refuse("--history needs sessions, which tell the fate of every transaction: leave out --unary");
  }
  const bool waits_for_itself = engine::Workload::kind(options.workload.name).has_pairs && options.batch_size == 1 &&
                                (options.in_flight < 2 || options.unary);
  if (waits_for_itself) {
    return refuse(options.workload.name +
                  " with --batch-size 1 needs --in-flight 2 or more on one session's stream: one transaction " +
                  "of a pair waits, and the other one has to be sent while it waits");
  }
  const auto workload = engine::Workload::create(options.workload);
  return workload.ok() ? client::Error{} : refuse(workload.status().message());
}

// Calls `set` with each value for each run so far, so that the axes are nested.
template <class T, class Set>
void for_each(std::vector<RunOptions>* runs, const std::vector<T>& values, const Set& set) {
  std::vector<RunOptions> combined;
  for (const RunOptions& run : *runs) {
    for (const T& value : values) {
      combined.push_back(run);
      set(&combined.back(), value);
    }
  }
  *runs = std::move(combined);
}

void add_duration(CLI::App* command, const std::string& name, std::int64_t* microseconds, std::int64_t min_us,
                  const std::string& description) {
  command->add_option(name, *microseconds, description)
      ->transform(client::duration(min_us))
      ->type_name("DURATION")
      ->default_str(client::format_duration(*microseconds));
}

}  // namespace

bool uses(const std::string& workload, WorkloadFlag flag) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), workload) != names.end();
  };
  switch (flag) {
    case WorkloadFlag::distribution:
      return !is_one_of({"kmeans", "cloth", "cuda-cuts", "local-km", "local-ga", "stmbench7"});
    case WorkloadFlag::wait_share:
    case WorkloadFlag::wait_timeout:
    case WorkloadFlag::pair_order: return engine::Workload::kind(workload).has_pairs;
    case WorkloadFlag::read_only_share: return engine::Workload::kind(workload).has_pairs || workload == "array-walk";
    case WorkloadFlag::value_size: return workload.starts_with("ycsb-") && workload != "ycsb-f";
  }
  return false;
}

client::Error Flags::check_meaning() const {
  for (const FlagName& flag : kWorkloadFlags) {
    const auto known = [&](const std::string& name) { return uses(name, flag.flag); };
    if (command_->count(flag.name) == 0 || std::any_of(workloads_.begin(), workloads_.end(), known)) continue;
    std::vector<std::string> users = shared_workloads();
    std::erase_if(users, [&](const std::string& name) { return !known(name); });
    return refuse(std::string(flag.name) + " means nothing for --workload " + joined(workloads_) + "; it is for " +
                  joined(users));
  }
  if (base_.reset && !base_.load) {
    return refuse("--reset deletes the records, and --no-load writes none, so nothing would be there: leave one out");
  }
  for (const char* flag : {"--batch-size", "--encoding"}) {
    if (!base_.unary || command_->count(flag) == 0) continue;
    return refuse(std::string(flag) + " means nothing with --unary, which sends one transaction a call; leave one out");
  }
  return {};
}

Flags::Flags(CLI::App* command, Purpose purpose) : command_(command), purpose_(purpose), server_(command) {
  if (purpose == Purpose::tune) {
    batch_sizes_ = {1, 4, 16, 64, 256, 1024, 4096};
    base_.duration_us = 2'000'000;
    base_.warmup_us = 500'000;
  }
  command->footer("Workloads, what --keys counts in each, its default, and its value in the paper or benchmark:\n" +
                  engine::Workload::describe_sizes(true));
  add_axes(command);
  if (purpose == Purpose::tune) add_tune(command);
  add_settings(command);
  add_workload_settings(command);
  add_outputs(command);
}

void Flags::add_axes(CLI::App* command) {
  const auto axis = [&](const std::string& name, auto* values, const CLI::Validator& takes,
                        const std::string& description) {
    auto* option = command->add_option(name, *values, description)->capture_default_str()->delimiter(',');
    option->transform(takes);
    if (purpose_ != Purpose::sweep && !(purpose_ == Purpose::tune && name == "--batch-size")) option->expected(1);
    return option;
  };
  axis("--workload", &workloads_, client::one_of(shared_workloads()),
       "transactions to run: a name from the list below");
  axis("--keys", &keys_, client::whole_number(0, std::uint64_t{1} << 32),
       "size of the data: what the list below counts, such as accounts; 2 to 2^32; 0: the default from that list");
  axis("--distribution", &distributions_, distribution(),
       "how keys are chosen: uniform, or zipf:THETA, such as zipf:0.99");
  axis("--encoding", &encodings_, client::one_of({"columns", "rows"}),
       "form of a batch on the network: columns or rows");
  axis("--batch-size", &batch_sizes_, client::whole_number(1, kBatchSizeMax),
       purpose_ == Purpose::tune
           ? "numbers of transactions in each request to compare, 1 to 65536; a request must fit into the server's "
             "--message-bytes-max"
           : "transactions in each request, 1 to 65536; a request must fit into the server's --message-bytes-max");
  axis("--connections", &connections_, client::whole_number(1, 1024),
       "HTTP/2 connections, each with one session, 1 to 1024");
  axis("--in-flight", &in_flight_, client::whole_number(1, 65'536),
       "requests in flight on each connection, 1 to 65536");
  if (purpose_ == Purpose::tune) return;
  axis("--rate", &rates_, client::real_number(0, std::numeric_limits<double>::infinity()),
       "transactions per second that all connections together start (open loop: latency counts from the intended "
       "start); 0: closed loop");
}

void Flags::add_tune(CLI::App* command) {
  command->get_option("--endpoint")
      ->description(
          "HOST:PORT of a kilokvd that runs; default: the environment variable KILOKV_ENDPOINT, else tune "
          "starts a server of its own");
  command->footer(
      command->get_footer() +
      "\nExit codes: 0 all that was asked for is recommended; 1 something is not, because the machine is too "
      "busy,\nno size meets --p99-goal, or too few rounds are complete; the others are those of run");
  command->add_option("--server", tune_.server,
                      "path of the kilokvd to start, in a temporary folder; default: kilokvd in the folder of this "
                      "program, else on PATH; with --endpoint or KILOKV_ENDPOINT, that server is used, and none is "
                      "started");
  command
      ->add_option("--batch-max-transactions", server_batch_max_,
                   "most transactions in one batch of the tune's own server; several values are compared, instead of "
                   "those of --batch-size, which then takes one value (default 1024); default: that of kilokvd")
      ->transform(client::whole_number(1, kServerBatchMax))
      ->delimiter(',')
      ->default_str("");
  command->add_option("--repeats", tune_.rounds, "runs of each size, one in each round; 3 to 100")
      ->transform(client::whole_number(kRoundsMin, 100))
      ->capture_default_str();
  command
      ->add_option("--p99-goal", tune_.p99_goal_us,
                   "also find the fastest size with a 99th percentile of the latency of at most this")
      ->transform(client::duration(1))
      ->type_name("DURATION");
  command
      ->add_option("--time-limit", tune_.time_limit_us,
                   "begin no run after this time; default: twice the estimate, and 30 s")
      ->transform(client::duration(1))
      ->type_name("DURATION");
}

void Flags::add_settings(CLI::App* command) {
  if (purpose_ != Purpose::tune) {
    command->add_flag("--unary", base_.unary,
                      "send one transaction in each call, without batches and without a session");
  }
  add_duration(command, "--duration", &base_.duration_us, 1, "time that is measured");
  add_duration(command, "--warmup", &base_.warmup_us, 0, "time of load before the measurement");
  add_duration(command, "--give-up-after", &base_.give_up_after_us, 1,
               "time for which a request is sent again while the server restarts");
  command
      ->add_option("--seed", base_.workload.seed,
                   purpose_ == Purpose::tune
                       ? "seed of the random choices in the transactions, and of the order of the sizes in each round"
                       : "seed of the random choices in the transactions")
      ->transform(client::whole_number())
      ->capture_default_str();
  command->add_flag("--load,!--no-load", base_.load, "write the missing initial records before the run (the default)");
  command->add_flag("--reset", base_.reset,
                    "delete the keys of the workload before they are written again, whatever --keys was before");
}

void Flags::add_workload_settings(CLI::App* command) {
  command
      ->add_option("--wait-share", base_.workload.semantic.wait_share,
                   "bank-semantic: share of the transactions that come in pairs, in which one waits for the other")
      ->transform(client::real_number(0, 1))
      ->capture_default_str();
  command
      ->add_option("--read-only-share", base_.workload.semantic.read_only_share,
                   "bank-semantic and array-walk: share of the transactions that only read")
      ->transform(client::real_number(0, 1))
      ->capture_default_str();
  base_.workload.semantic.wait_timeout_us = 10'000'000;
  add_duration(command, "--wait-timeout", &base_.workload.semantic.wait_timeout_us, 0,
               "bank-semantic: longest time that one transaction of a pair waits for the other");
  command
      ->add_option(
          "--pair-order", pair_order_,
          "bank-semantic: order in a pair: withdrawals-first, deposits-first, or precedence (the withdrawal is "
          "sent first, with the higher precedence number, so that it runs last)")
      ->transform(client::one_of({"withdrawals-first", "precedence", "deposits-first"}))
      ->capture_default_str();
  command
      ->add_option("--value-size", base_.workload.ycsb.payload_bytes,
                   "ycsb-a to ycsb-e: size of a value, such as 100 or 4KiB")
      ->transform(client::size_in_bytes(1, std::numeric_limits<std::uint32_t>::max()))
      ->capture_default_str();
}

void Flags::add_outputs(CLI::App* command) {
  command->add_option("--json", json_path_, "write the report as JSON to this file; -: standard output");
  command->add_option("--csv", csv_path_,
                      "write the report as CSV to this file, a row for each run; -: standard output");
  if (purpose_ == Purpose::tune) return;
  command->add_option("--html", html_path_,
                      "write the report with plots to this file, as one HTML page that needs no network; -: standard "
                      "output");
  command->add_option("--history", base_.history_path,
                      "write every transaction to this file, as one line of JSON each");
}

client::Expected<std::vector<RunOptions>> Flags::runs() const {
  if (client::Error error = check_meaning()) return error;
  std::vector<RunOptions> runs{base_};
  if (client::Error error = server_.apply(&runs.front().server)) return error;
  for_each(&runs, workloads_, [](RunOptions* run, const auto& name) { run->workload.name = name; });
  for_each(&runs, keys_, [](RunOptions* run, std::uint64_t keys) {
    run->workload.keys = keys != 0 ? keys : engine::Workload::kind(run->workload.name).keys_small;
  });
  for_each(&runs, distributions_, [](RunOptions* run, const auto& text) {
    run->workload.distribution = *engine::parse_distribution(text);  // checked when it was read
  });
  for_each(&runs, encodings_, [&](RunOptions* run, const auto& name) {
    run->encoding = name == "rows" ? client::Encoding::rows : client::Encoding::columns;
  });
  for_each(&runs, batch_sizes_, [](RunOptions* run, std::uint32_t size) { run->batch_size = run->unary ? 1 : size; });
  for_each(&runs, server_batch_max_, [](RunOptions* run, std::uint32_t size) { run->server_batch_max = size; });
  for_each(&runs, connections_, [](RunOptions* run, std::uint32_t count) { run->connections = count; });
  for_each(&runs, in_flight_, [](RunOptions* run, std::uint32_t count) { run->in_flight = count; });
  for_each(&runs, rates_, [](RunOptions* run, double rate) { run->rate_per_s = rate; });
  for (RunOptions& run : runs) {
    if (pair_order_ == "precedence") run.workload.semantic.order = engine::PairOrder::precedence;
    if (pair_order_ == "deposits-first") run.workload.semantic.order = engine::PairOrder::deposits_first;
    fit_pairs(&run);
    if (client::Error error = check(run)) return error;
  }
  return runs;
}

bool Flags::has_own_server() const {
  if (command_->count("--server") != 0) return true;
  return !server_.endpoint_given() && client::environment_variable(client::kEndpointVariable).empty();
}

client::Error Flags::check_own_server(const std::string& program) const {
  if (command_->count("--server") != 0 && server_.endpoint_given()) {
    return refuse("--server and --endpoint exclude each other: give one of them");
  }
  if (!has_own_server()) {
    if (command_->count("--batch-max-transactions") == 0) return {};
    return refuse("--batch-max-transactions is for the tune's own server: leave out --endpoint, or the flag");
  }
  for (const char* flag : {"--reset", "--no-load"}) {
    if (flag == std::string_view("--reset") ? base_.reset : !base_.load) {
      return refuse(std::string(flag) + " means nothing for the tune's own server, whose data is new; leave it out");
    }
  }
  if (::access(program.c_str(), X_OK) == 0) return {};
  return make_error(client::ErrorCode::failed_precondition,
                    "--server: cannot run " + program + ": " + std::generic_category().message(errno) +
                        "; name a kilokvd, or a server that runs with --endpoint");
}

client::Expected<TuneOptions> Flags::tune() const {
  TuneOptions options = tune_;
  options.varies_server = server_batch_max_.size() > 1;
  if (has_own_server()) {
    if (options.server.empty()) options.server = own_server::find_server();
  } else {
    options.server.clear();
  }
  if (client::Error error = check_own_server(options.server)) return error;
  auto points = runs();
  if (!points) return points.error();
  options.points = std::move(*points);
  if (options.varies_server) {
    if (command_->count("--batch-size") != 0 && batch_sizes_.size() > 1) {
      return refuse("several values of --batch-max-transactions are compared, so --batch-size takes one value");
    }
    const std::uint32_t size = command_->count("--batch-size") != 0 ? batch_sizes_.front() : RunOptions{}.batch_size;
    std::erase_if(options.points, [size](const RunOptions& point) { return point.batch_size != size; });
  }
  std::sort(options.points.begin(), options.points.end(),
            [&](const RunOptions& a, const RunOptions& b) { return size_of(options, a) < size_of(options, b); });
  const auto repeated = std::unique(options.points.begin(), options.points.end(), [&](const auto& a, const auto& b) {
    return size_of(options, a) == size_of(options, b);
  });
  options.points.erase(repeated, options.points.end());
  if (options.points.size() > 1) return options;
  return refuse(std::string(size_flag(options)) + " has one value: give two or more to compare");
}

}  // namespace kilokv::bench
