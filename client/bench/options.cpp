// Role: see options.hpp.
#include "client/bench/options.hpp"

#include <algorithm>
#include <utility>

#include "client/bench/steady_scan.hpp"
#include "client/bench/text.hpp"

namespace kilokv::bench {
namespace {

client::Error refuse(std::string message) {
  return make_error(client::ErrorCode::invalid_argument, std::move(message));
}

std::string duration_flag(std::int64_t microseconds) {
  if (microseconds % 1'000'000 == 0) return std::to_string(microseconds / 1'000'000) + "s";
  if (microseconds % 1'000 == 0) return std::to_string(microseconds / 1'000) + "ms";
  return std::to_string(microseconds) + "us";
}

// A list of pairs is open only while its calls are: with one transaction a request the pairs stay open across calls,
// and only as many as the requests in flight can carry, or a closed loop would wait for itself.
void fit_pairs(RunOptions* options) {
  engine::BankSemanticOptions& semantic = options->workload.semantic;
  if (options->batch_size > 1) return;
  semantic.across_calls = true;
  semantic.wait_lag = std::clamp<std::uint32_t>(options->in_flight / 2, 1, semantic.wait_lag);
}

client::Error check(const RunOptions& options) {
  if (options.batch_size == 0 || options.batch_size > 65'536) return refuse("--batch-size takes 1 to 65536");
  if (options.connections == 0 || options.connections > 1024) return refuse("--connections takes 1 to 1024");
  if (options.in_flight == 0 || options.in_flight > 65'536) return refuse("--in-flight takes 1 to 65536");
  if (options.duration_us == 0) return refuse("--duration takes more than 0");
  if (options.rate_per_s < 0) return refuse("--rate takes 0 (closed loop) or more");
  if (options.unary && !options.history_path.empty()) {
    return refuse("--history needs sessions, so that the fate of every transaction is learnt: leave --unary out");
  }
  const bool waits_for_itself =
      options.workload.name == "bank-semantic" && options.batch_size == 1 && (options.in_flight < 2 || options.unary);
  if (waits_for_itself) {
    return refuse(
        "bank-semantic with --batch-size 1 needs --in-flight 2 or more on one session's stream: the deposit " +
        std::string("has to be sent while its withdrawal waits"));
  }
  if (options.workload.name == "mixed")
    return refuse("--workload mixed has no invariant to check; it is for the engine's tests");
  const auto workload = engine::Workload::create(options.workload);
  return workload.ok() ? client::Error{} : refuse(workload.status().message());
}

// Calls `visit` with each value in the place where options have it; nested, one for each axis.
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

}  // namespace

CLI::Option* add_duration(CLI::App* command, const std::string& name, std::int64_t* microseconds,
                          const std::string& description) {
  const auto read = [microseconds](const std::string& text) {
    const auto parsed = parse_duration_us(text);
    if (!parsed) throw CLI::ValidationError(text + " is not a duration such as 500ms or 3s");
    *microseconds = *parsed;
  };
  return command->add_option_function<std::string>(name, read, description)
      ->type_name("DURATION")
      ->default_str(duration_flag(*microseconds));
}

Flags::Flags(CLI::App* command, bool lists) {
  add_axes(command, lists);
  add_settings(command);
}

void Flags::add_axes(CLI::App* command, bool lists) {
  const auto axis = [&](const std::string& name, auto* values, const std::string& description) {
    auto* option = command->add_option(name, *values, description)->capture_default_str()->delimiter(',');
    if (!lists) option->expected(1);
    return option;
  };
  axis("--workload", &workloads_, "bank, bank-semantic, hot, hot-deposits or ycsb-a");
  axis("--keys", &keys_, "accounts, or records; 2 to 2^32");
  axis("--distribution", &distributions_, "uniform, or zipf:0.99");
  axis("--encoding", &encodings_, "how batches travel: columns or rows");
  axis("--batch-size", &batch_sizes_, "transactions of a request, 1 to 65536");
  axis("--connections", &connections_, "HTTP/2 connections, with a session on each");
  axis("--in-flight", &in_flight_, "requests in flight on each connection");
  axis("--rate", &rates_,
       "transactions per second of all connections together, latency from the intended start (open loop); 0: closed "
       "loop");
}

void Flags::add_settings(CLI::App* command) {
  command->add_option("--endpoint", base_.endpoint, "HOST:PORT of the server")->capture_default_str();
  command->add_flag("--unary", base_.unary, "one transaction a call, without batches and without a session");
  add_duration(command, "--duration", &base_.duration_us, "of the measured part");
  add_duration(command, "--warmup", &base_.warmup_us, "load before the measured part");
  add_duration(command, "--give-up-after", &base_.give_up_after_us,
               "how long a request is sent again through restarts of the server");
  command->add_option("--seed", base_.workload.seed, "of the transactions")->capture_default_str();
  command
      ->add_option("--wait-share", base_.workload.semantic.wait_share,
                   "bank-semantic: the share of transactions that are in pairs of withdrawal and deposit")
      ->capture_default_str();
  base_.workload.semantic.wait_timeout_us = 10'000'000;
  add_duration(command, "--wait-timeout", &base_.workload.semantic.wait_timeout_us,
               "bank-semantic: how long a withdrawal waits for its deposit");
  command
      ->add_option(
          "--pair-order", pair_order_,
          "bank-semantic: withdrawals-first, precedence (sent first, but with the higher precedence) or deposits-first")
      ->check(CLI::IsMember({"withdrawals-first", "precedence", "deposits-first"}))
      ->capture_default_str();
  command
      ->add_option("--value-size", base_.workload.ycsb.payload_bytes, "ycsb-a: bytes of a value, such as 100 or 4KiB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command->add_flag("--load,!--no-load", base_.load, "load the initial records that are not there (the default)");
  command->add_option("--json", json_path_, "write the report as JSON to this file; -: standard output");
  command->add_option("--history", base_.history_path, "write every transaction as a JSON line to this file");
}

client::Expected<std::vector<RunOptions>> Flags::runs() const {
  std::vector<RunOptions> runs{base_};
  std::string problem;
  for_each(&runs, workloads_, [](RunOptions* run, const auto& name) { run->workload.name = name; });
  for_each(&runs, keys_, [](RunOptions* run, std::uint64_t keys) { run->workload.keys = keys; });
  for_each(&runs, distributions_, [&](RunOptions* run, const auto& text) {
    const auto distribution = engine::parse_distribution(text);
    if (distribution.ok()) run->workload.distribution = *distribution;
    if (!distribution.ok()) problem = "--distribution: " + distribution.status().message();
  });
  for_each(&runs, encodings_, [&](RunOptions* run, const auto& name) {
    if (name != "columns" && name != "rows") problem = "--encoding takes columns or rows, not " + name;
    run->encoding = name == "rows" ? client::Encoding::rows : client::Encoding::columns;
  });
  for_each(&runs, batch_sizes_, [](RunOptions* run, std::uint32_t size) { run->batch_size = run->unary ? 1 : size; });
  for_each(&runs, connections_, [](RunOptions* run, std::uint32_t count) { run->connections = count; });
  for_each(&runs, in_flight_, [](RunOptions* run, std::uint32_t count) { run->in_flight = count; });
  for_each(&runs, rates_, [](RunOptions* run, double rate) { run->rate_per_s = rate; });
  if (!problem.empty()) return refuse(problem);
  for (RunOptions& run : runs) {
    if (pair_order_ == "precedence") run.workload.semantic.order = engine::PairOrder::precedence;
    if (pair_order_ == "deposits-first") run.workload.semantic.order = engine::PairOrder::deposits_first;
    fit_pairs(&run);
    if (client::Error error = check(run)) return error;
  }
  return runs;
}

}  // namespace kilokv::bench
