#include "engine/bench/options.hpp"

#include <algorithm>

#include "engine/strategies.hpp"

namespace kilokv::engine::bench {

namespace {

Flag wait_order_flag(PairOrder* target) {
  return {
      "wait-order", "ORDER", "withdrawals-first",
      "bank-semantic, vacation: order of a pair. withdrawals-first: the one that waits is sent first. precedence: the "
      "same, but the engine sorts them by precedence. deposits-first: sent in the order that needs no wait",
      [=](std::string_view text) {
        if (text == "withdrawals-first") {
          *target = PairOrder::withdrawals_first;
        } else if (text == "precedence") {
          *target = PairOrder::precedence;
        } else if (text == "deposits-first") {
          *target = PairOrder::deposits_first;
        } else {
          return Status::invalid(
              {"wait-order", "withdrawals-first, precedence or deposits-first", std::string(text), "--wait-order"});
        }
        return Status();
      }};
}

Flag distribution_flag(DistributionOptions* target) {
  return {"distribution", "NAME", to_string(*target),
          "distribution by which keys are drawn: uniform, zipf:THETA or zipf-ordered:THETA",
          [=](std::string_view text) {
            auto parsed = parse_distribution(text);
            if (parsed.ok()) *target = *parsed;
            return parsed.status();
          }};
}

// check_options() checks whether the setting takes the text, together with all other options.
Flag setting_flag(const SettingInfo& info, SettingTexts* target) {
  const StrategySetting& setting = info.setting;
  const bool is_switch = setting.kind == SettingKind::on_off;
  return {setting.name,
          is_switch                           ? ""
          : setting.kind == SettingKind::form ? "FORM"
                                              : "N",
          setting.default_text(),
          std::string(setting.help) + " Strategies: " + listed(info.strategies, ", ") + "." +
              (is_switch ? "" : " Takes " + setting.takes() + "."),
          [name = std::string(setting.name), is_switch, target](std::string_view text) {
            (*target)[name] = is_switch ? "on" : text;
            return Status();
          }};
}

}  // namespace

std::vector<Flag> bench_flags(BenchOptions* options) {
  std::vector<std::string> workloads = Workload::names();
  workloads.push_back("all");
  std::vector<Flag> flags = {
      choice_flag("device", Engine::devices(),
                  "where batches run; auto: on a CUDA device if there is one, else on the CPU", &options->device),
      choice_flag("strategy", Engine::strategies(), "strategy that runs the batches; see below", &options->strategy),
      choice_flag(
          "order", Engine::orders(),
          "order that the strategy auto must keep. fixed: by precedence, then by place in the batch. any: any serial "
          "order, also one that a strategy finds",
          &options->order),
      choice_flag("workload", workloads, "workload to run; all: every workload, and bank also under zipf:0.99",
                  &options->workload),
      choice_flag("preset", {"small", "paper"}, "size of the workloads; see below", &options->preset),
      number_flag("keys", "keys",
                  "number of accounts, customers or rows of the workload (see below); 0: the preset's number", 0,
                  std::uint64_t{1} << 32, &options->keys),
      distribution_flag(&options->distribution),
      number_flag("threads", "threads", "threads on the CPU for all strategies except serial; 0: one for each core", 0,
                  EngineOptions::kThreadsMax, &options->threads),
  };
  for (const SettingInfo& info : strategy_settings()) flags.push_back(setting_flag(info, &options->settings));
  const std::vector<Flag> others = {
      number_flag("batch", "transactions", "number of transactions in a batch", 1, 1'000'000,
                  &options->batch_transactions),
      number_flag("batches", "batches", "batches to run for each workload; 0: as many as --duration allows", 0,
                  1'000'000'000, &options->batches),
      number_flag("warmup", "batches",
                  "batches to run before the measured ones, for each workload; they are verified if --verify is given, "
                  "but not reported",
                  0, 1'000'000, &options->warmup_batches),
      duration_flag("duration", "how long the batches of a workload execute, if --batches is 0",
                    &options->duration_seconds),
      number_flag("seed", "", "seed of all random choices of the workloads; the same seed makes the same transactions",
                  0, ~0ull, &options->seed),
      share_flag("wait-share", "bank-semantic, vacation: share of transactions in pairs, one of which waits",
                 &options->semantic.wait_share),
      share_flag("read-only-share",
                 "bank-semantic, vacation, skiplist, array-walk: share of transactions that only read",
                 &options->semantic.read_only_share),
      number_flag("wait-lag", "transactions",
                  "bank-semantic, vacation: number of transactions between the two of a pair", 1, 65'536,
                  &options->wait_lag),
      wait_order_flag(&options->semantic.order),
      number_flag("payload", "bytes", "ycsb: size of a value in bytes", 0, 1 << 20, &options->payload_bytes),
      number_flag("operations", "operations",
                  "ycsb: operations in a transaction; array-walk: loads in a transaction, at least 2", 1, 1024,
                  &options->operations),
      share_flag("update-share",
                 "ycsb-a, ycsb-f: share of operations that write; stmbench7: share of transactions that write",
                 &options->update_share),
      number_flag("warehouses", "warehouses", "tpcc: number of warehouses; 0: one for each 30000 customers", 0, 100'000,
                  &options->tpcc.warehouses),
      share_flag("payment-share", "tpcc: share of transactions that are Payments; the rest are NewOrders",
                 &options->tpcc.payment_share),
      switch_flag("no-ranges", "leave ranges out of mixed, and ycsb-e out of all; only serial runs batches with ranges",
                  &options->no_ranges),
      switch_flag("verify", "check every batch with the referee, and report no throughput", &options->verify),
      switch_flag("batch-times",
                  "measure the stages of each batch: wall time, processor time of all threads, and the share of the "
                  "time in which only one thread works; this makes a batch some microseconds slower",
                  &options->batch_times),
      switch_flag("baseline", "compare bank with a hand-written loop over the same table; the two run in turn",
                  &options->baseline),
      number_flag("pairs", "pairs", "--baseline: number of pairs of runs; each run is as long as --duration", 1, 1000,
                  &options->pairs),
      switch_flag("json", "print one JSON document on the standard output; the table goes to the error output",
                  &options->json),
      switch_flag("version", "print version and commit and exit", &options->version),
      switch_flag("help", "print this and exit", &options->help),
  };
  flags.insert(flags.end(), others.begin(), others.end());
  return flags;
}

std::string describe_strategies() {
  constexpr std::size_t kSummaryColumn = 12;
  const auto line = [](const std::string& name, const std::string& text) {
    return "  " + name + std::string(kSummaryColumn - 2 - std::min(name.size(), kSummaryColumn - 3), ' ') + text + "\n";
  };
  std::string text = "Strategies:\n";
  std::vector<std::string> fixed, any;
  for (const StrategyInfo& info : strategy_infos()) {
    text += line(info.name, info.summary);
    if (info.auto_order == "fixed") fixed.push_back(info.name);
    if (info.auto_order == "any") any.push_back(info.name);
  }
  text += line("auto", "Chooses the cheapest of " + listed(fixed, " and ") +
                           " for each batch; with --order any also of " + listed(any, " and ") + ".");
  return text + "Batches with ranges are run by serial, under every strategy.\n";
}

EngineOptions engine_options_of(const BenchOptions& options) {
  EngineOptions engine;
  engine.strategy = options.strategy;
  engine.order = options.order;
  engine.device = options.device;
  engine.threads = static_cast<std::uint32_t>(options.threads);
  engine.settings = options.settings;
  engine.measure_stages = options.batch_times;
  engine.allow_unproven = true;  // deploy/gpu-check.sh checks what a server refuses
  return engine;
}

Status check_options(const BenchOptions& options) {
  if (Status status = engine_options_of(options).validate(); !status.ok()) return status;
  if (options.strategy == "serial" && options.threads > 1) {
    return Status::invalid(
        {"threads", "1 thread with --strategy serial", std::to_string(options.threads) + " threads", "--threads"});
  }
  if (options.keys == 1) return Status::invalid({"keys", "2 keys or more", "1", "--keys"});
  if (options.baseline && (options.verify || options.workload != "bank")) {
    return {StatusCode::invalid_argument, "--baseline measures --workload bank, without --verify"};
  }
  return {};
}

std::vector<WorkloadOptions> selected_workloads(const BenchOptions& options) {
  WorkloadOptions base{.name = options.workload,
                       .keys = options.keys,
                       .distribution = options.distribution,
                       .seed = options.seed,
                       .stream = 0,
                       .semantic = options.semantic,
                       .ycsb = {static_cast<std::uint32_t>(options.payload_bytes),
                                static_cast<std::uint32_t>(options.operations), options.update_share},
                       .tpcc = options.tpcc,
                       .mixed = {.ranges = !options.no_ranges}};
  base.semantic.wait_lag = static_cast<std::uint32_t>(options.wait_lag);
  const auto sized = [&](const WorkloadKind& kind) {
    WorkloadOptions one = base;
    one.name = kind.name;
    if (one.keys == 0) one.keys = options.preset == "paper" ? kind.keys_paper : kind.keys_small;
    return one;
  };
  if (options.workload != "all") return {sized(Workload::kind(options.workload))};
  std::vector<WorkloadOptions> all;
  for (const WorkloadKind& kind : Workload::kinds()) {
    if (kind.has_ranges && options.no_ranges) continue;
    WorkloadOptions one = sized(kind);
    one.keys = std::min(one.keys, kind.keys_max);
    one.ycsb.operations = std::min(one.ycsb.operations, kind.operations_max);
    all.push_back(one);
    if (one.name != "bank") continue;
    all.back().distribution = DistributionOptions{};
    all.push_back(one);
    all.back().distribution = DistributionOptions{.theta = 0.99, .scrambled = true};
  }
  return all;
}

}  // namespace kilokv::engine::bench
