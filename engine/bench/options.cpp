#include "engine/bench/options.hpp"

#include <algorithm>

#include "engine/exec/papers/history_size.hpp"
#include "engine/stm/papers/kilo_arguments.hpp"
#include "engine/stm/papers/local_arguments.hpp"

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

}  // namespace

std::vector<Flag> bench_flags(BenchOptions* options) {
  std::vector<std::string> workloads = Workload::names();
  workloads.push_back("all");
  return {
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
      number_flag("records-per-lock", "records", "prstm, lock, gpustm, the rest of local: that one lock covers", 1,
                  EngineOptions::kPerLockMax, &options->records_per_lock),
      number_flag("transactions-per-thread", "transactions",
                  "prstm, lock, gpustm, kilo, local: in a row that one thread takes together; 0: as is best", 0,
                  EngineOptions::kPerThreadMax, &options->transactions_per_thread),
      number_flag("commit-units", "units", "kilo: parts of the records, each with a history; 1, 2, 4, 8, 16 or 32", 1,
                  kCommitUnitsMax, &options->commit_units),
      text_flag("history", "SIZE", "kilo: of each history: " + std::string(HistorySize::kForms), &options->history),
      number_flag("concurrency-limit", "transactions", "kilo: between start and end at once; 0: it adapts", 0,
                  EngineOptions::kConcurrencyMax, &options->concurrency_limit),
      number_flag("staged-records", "records", "local: that its stage has room for; 0: it has no stage", 0,
                  kStagedRecordsMax, &options->staged_records),
      number_flag("signature-bits", "bits", "local: of the signature of each lane of its stage; a power of two", 1,
                  kSignatureBitsMax, &options->signature_bits),
      number_flag("stage-blocks", "blocks", "local, on a device: in whose memory its stage is, at most; 1, 2, 4 or 8",
                  1, kStageBlocksMax, &options->stage_blocks),
      switch_flag("stage-times", "local: tell where the time of its stage's threads goes, which costs some",
                  &options->stage_times),
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
}

std::string describe_strategies() {
  return "Strategies:\n"
         "  serial   one by one, in the order of the specification\n"
         "  ordered  on several threads, with the results of serial, bit for bit\n"
         "  prstm    in an order that it finds: priority decides conflicts; who waits for another is postponed\n"
         "  lock     in an order that it finds: every transaction locks all that it may touch first\n"
         "  gpustm   in an order that it finds: GPU-STM, for comparison; who waits for another is tried up to 100 "
         "times\n"
         "  kilo     in an order that it finds: KILO TM: validation by value, commits in the order of IDs\n"
         "  local    in an order that it finds: GPU-LocalTM for the records wanted most, on a stage; prstm for the "
         "rest\n"
         "  auto     the fastest one of serial and ordered; with --order any also prstm, kilo and local\n"
         "Batches with ranges are run by serial, under every strategy.\n";
}

EngineOptions engine_options_of(const BenchOptions& options) {
  EngineOptions engine;
  engine.strategy = options.strategy;
  engine.order = options.order;
  engine.device = options.device;
  engine.threads = static_cast<std::uint32_t>(options.threads);
  engine.records_per_lock = static_cast<std::uint32_t>(options.records_per_lock);
  engine.transactions_per_thread = static_cast<std::uint32_t>(options.transactions_per_thread);
  engine.commit_units = static_cast<std::uint32_t>(options.commit_units);
  engine.history = options.history;
  engine.staged_records = static_cast<std::uint32_t>(options.staged_records);
  engine.signature_bits = static_cast<std::uint32_t>(options.signature_bits);
  engine.stage_blocks = static_cast<std::uint32_t>(options.stage_blocks);
  engine.stage_times = options.stage_times;
  engine.concurrency_limit = static_cast<std::uint32_t>(options.concurrency_limit);
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
