#include "engine/bench/options.hpp"

#include <algorithm>

#include "engine/strategies.hpp"

namespace kilokv::engine::bench {

namespace {

Flag wait_order_flag(PairOrder* target) {
  return {"wait-order", "ORDER", "withdrawals-first",
          "bank-semantic, vacation: withdrawals-first, precedence (so sent, sorted by the engine) or deposits-first",
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
  return {"distribution", "NAME", to_string(*target), "which keys: uniform, zipf:THETA or zipf-ordered:THETA",
          [=](std::string_view text) {
            auto parsed = parse_distribution(text);
            if (parsed.ok()) *target = *parsed;
            return parsed.status();
          }};
}

// Whether the text is one that the setting takes is checked with all the other options (check_options).
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
      choice_flag("device", Engine::devices(), "where batches run; auto: a CUDA device where there is one",
                  &options->device),
      choice_flag("strategy", Engine::strategies(), "how batches run, see below", &options->strategy),
      choice_flag("order", Engine::orders(),
                  "auto: in which order a batch may run: fixed: by precedence and place in the batch; any: also in one "
                  "that a strategy finds",
                  &options->order),
      choice_flag("workload", workloads, "what to run; all: each, bank also under zipf:0.99", &options->workload),
      choice_flag("preset", {"small", "paper"}, "how large the workloads are, see below", &options->preset),
      number_flag("keys", "keys", "accounts, customers, rows (see below); 0: as the preset has it", 0,
                  std::uint64_t{1} << 32, &options->keys),
      distribution_flag(&options->distribution),
      number_flag("threads", "threads", "of all strategies but serial, on the CPU; 0: one for each core", 0,
                  EngineOptions::kThreadsMax, &options->threads),
  };
  for (const SettingInfo& info : strategy_settings()) flags.push_back(setting_flag(info, &options->settings));
  const std::vector<Flag> others = {
      number_flag("batch", "transactions", "of each batch", 1, 1'000'000, &options->batch_transactions),
      number_flag("batches", "batches", "to run per workload; 0: as many as --duration allows", 0, 1'000'000'000,
                  &options->batches),
      number_flag("warmup", "batches", "to run before, per workload: executed and verified, not reported", 0, 1'000'000,
                  &options->warmup_batches),
      duration_flag("duration", "of execution per workload, while --batches is 0", &options->duration_seconds),
      number_flag("seed", "",
                  "that the random choices of the workloads start from: the same seed makes the same transactions", 0,
                  ~0ull, &options->seed),
      share_flag("wait-share", "bank-semantic, vacation: share of transactions in pairs, one of which waits",
                 &options->semantic.wait_share),
      share_flag("read-only-share",
                 "bank-semantic, vacation, skiplist, array-walk: share of transactions that only read",
                 &options->semantic.read_only_share),
      number_flag("wait-lag", "transactions", "bank-semantic, vacation: sent between the halves of a pair", 1, 65'536,
                  &options->wait_lag),
      wait_order_flag(&options->semantic.order),
      number_flag("payload", "bytes", "ycsb: size of a value", 0, 1 << 20, &options->payload_bytes),
      number_flag("operations", "operations", "ycsb: of each transaction; array-walk: its loads, at least 2", 1, 1024,
                  &options->operations),
      share_flag("update-share", "ycsb-a, ycsb-f: share of operations that write; stmbench7: of transactions",
                 &options->update_share),
      number_flag("warehouses", "warehouses", "tpcc: 0: one for each 30000 customers", 0, 100'000,
                  &options->tpcc.warehouses),
      share_flag("payment-share", "tpcc: share of transactions that are Payments; the rest are NewOrders",
                 &options->tpcc.payment_share),
      switch_flag("no-ranges", "mixed without ranges, which serial alone runs; all without ycsb-e",
                  &options->no_ranges),
      switch_flag("verify", "check every batch with the referee; no throughput is reported", &options->verify),
      switch_flag("baseline", "bank against a hand-written loop over the same table, in turn", &options->baseline),
      number_flag("pairs", "pairs", "of alternating runs of --baseline, each as long as --duration", 1, 1000,
                  &options->pairs),
      switch_flag("json", "one JSON document on the standard output; the table goes to the error output",
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
  text += line("auto", "Chooses the fastest of " + listed(fixed, " and ") +
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
