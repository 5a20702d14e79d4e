#include "engine/bench/compare_options.hpp"

#include <algorithm>
#include <thread>

#include "engine/engine.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

namespace {

// What belongs to a set of figures: which workloads it has, whom it compares, and which flags mean something to it
// alone.
struct FigureSet {
  const char* name;
  std::vector<std::string> workloads, strategies, flags;
};

// Those that every strategy runs, in parallel, too.
std::vector<std::string> workloads_without_ranges() {
  std::vector<std::string> names;
  for (const WorkloadKind& kind : Workload::kinds()) {
    if (!kind.has_ranges) names.push_back(kind.name);
  }
  return names;
}

const std::vector<FigureSet>& all_figure_sets() {
  static const std::vector<FigureSet> sets = {
      {"prstm",
       {"bank-semantic", "vacation", "skiplist", "kmeans", "graph"},
       {"serial", "ordered", "prstm", "lock", "gpustm"},
       {"records-per-lock", "semantic-shares"}},
      {"kilo",
       {"ht-h", "ht-l", "atm", "cloth", "barnes-hut", "cuda-cuts", "apriori"},
       {"serial", "lock", "prstm", "kilo"},
       {"concurrency-limits"}},
      {"local", {"local-ht", "local-km", "local-ga"}, {"serial", "lock", "local"}, {"sizes"}},
      {"contention", {"ycsb-f", "bank", "deposits"}, Engine::strategies(), {"thetas", "update-shares", "operations"}},
      {"workloads", workloads_without_ranges(), Engine::strategies(), {}},
  };
  return sets;
}

const FigureSet& figure_set(const std::string& name) {
  for (const FigureSet& set : all_figure_sets()) {
    if (set.name == name) return set;
  }
  return all_figure_sets().front();
}

std::vector<std::string> workloads_of_all_sets() {
  std::vector<std::string> names;
  for (const FigureSet& set : all_figure_sets()) {
    for (const std::string& name : set.workloads) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

// One that takes minutes on 2 cores, and one with the sizes and ranges of the papers.
CompareOptions preset_values(const std::string& name) {
  CompareOptions values;
  if (name == "paper") {
    values.records_per_lock = {1, 4, 16, 64, 256, 1024, 4096};
    values.semantic_shares = {0, 0.05, 0.1, 0.25, 0.5, 0.75, 1};
    values.concurrency_limits = {32, 256, 960, 1920, 3840, 15'360, 0};
    values.sizes = {2, 4, 8, 16, 32, 64, 128, 256};
    values.thetas = {0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.1, 1.2, 10};
    values.update_shares = {0, 0.05, 0.2, 0.5, 0.8, 1};
    values.operations = {1, 2, 4, 8, 16, 32, 64};
    values.batch_transactions = 16'384;
    values.repeats = 5;
    values.verify_batches = 2;
    values.duration_seconds = 1;
  } else {
    values.records_per_lock = {1, 16, 256, 4096};
    values.semantic_shares = {0, 0.05, 0.25, 1};
    values.concurrency_limits = {1, 8, 64, 512, 0};
    values.sizes = {2, 16, 64, 256};
    values.thetas = {0, 0.5, 0.8, 0.99, 1.2, 10};
    values.update_shares = {0, 0.2, 0.5, 1};
    values.operations = {1, 4, 16, 64};
    values.batch_transactions = 8192;  // fewer, and what a pass costs however small it is would be what is compared
    values.repeats = 3;
    values.verify_batches = 1;
    values.duration_seconds = 0.04;
  }
  return values;
}

// 1, 2, 4 ... and the number of cores; 2 at least, for one thread has no conflicts.
std::vector<std::uint64_t> threads_of_machine() {
  const std::uint64_t cores = std::max(std::thread::hardware_concurrency(), 2u);
  std::vector<std::uint64_t> threads;
  for (std::uint64_t n = 1; n < cores; n *= 2) threads.push_back(n);
  threads.push_back(cores);
  return threads;
}

template <class T>
void fill_in(T* value, const T& otherwise) {
  if (*value == T{}) *value = otherwise;
}

// What means something to other figures would be ignored.
Status check_figures(const CompareOptions& options) {
  const FigureSet& chosen = figure_set(options.figures);
  for (const std::string& workload : options.workloads) {
    if (std::find(chosen.workloads.begin(), chosen.workloads.end(), workload) != chosen.workloads.end()) continue;
    std::string names;
    for (const std::string& name : chosen.workloads) names += (names.empty() ? "" : ", ") + name;
    return Status::invalid({"workloads", "with --figures " + options.figures + ": " + names, workload, "--workloads"});
  }
  if (options.figures == "local" && options.keys != 0) {
    return {StatusCode::invalid_argument, "--keys is not of --figures local: --sizes says how large its workloads are"};
  }
  for (const FigureSet& set : all_figure_sets()) {
    if (&set == &chosen) continue;
    for (const std::string& flag : options.given) {
      if (std::find(set.flags.begin(), set.flags.end(), flag) == set.flags.end()) continue;
      return {StatusCode::invalid_argument, "--" + flag + " is of --figures " + set.name + ", not of " + chosen.name};
    }
  }
  return {};
}

// What says how to measure would be ignored.
Status check_from(const CompareOptions& options) {
  for (const std::string& flag : options.given) {
    if (flag == "from" || flag == "html") continue;
    return {StatusCode::invalid_argument, "--from takes no --" + flag + ": it measures nothing"};
  }
  if (!options.html.empty()) return {};
  return {StatusCode::invalid_argument, "--from writes the page of a document: --html says where"};
}

Status check_outputs(const CompareOptions& options) {
  if (!options.from.empty()) {
    if (Status status = check_from(options); !status.ok()) return status;
  }
  if (options.html.empty() || (options.html != options.from && options.html != options.json)) return {};
  return {StatusCode::invalid_argument, "--html is \"" + options.html + "\": the document is there"};
}

std::uint64_t most_of_setting(const char* name) { return find_setting_info(name)->setting.high; }

}  // namespace

std::vector<std::string> figure_sets() {
  std::vector<std::string> names;
  for (const FigureSet& set : all_figure_sets()) names.push_back(set.name);
  return names;
}

std::vector<Flag> compare_flags(CompareOptions* options) {
  const std::string by_preset = "as the preset has it";
  return {
      choice_flag("figures", figure_sets(),
                  "those of the papers of PR-STM, KILO TM, GPU-LocalTM; a sweep of contention; all workloads",
                  &options->figures),
      choice_flag("preset", {"small", "paper"}, "small takes minutes; paper has the sizes of the papers",
                  &options->preset),
      choice_list_flag("strategies", Engine::strategies(), "as the figures have it", "which ones take turns",
                       &options->strategies),
      choice_list_flag("workloads", workloads_of_all_sets(), "all of the figures", "which of the figures'",
                       &options->workloads),
      choice_flag("device", Engine::devices(), "where batches run; auto: a CUDA device where there is one",
                  &options->device),
      number_list_flag("threads", "1, 2, 4 ... and one for each core",
                       "of the figures by threads; others have the most", 1, EngineOptions::kThreadsMax,
                       &options->threads),
      number_list_flag("records-per-lock", by_preset, "of the figures by records per lock; others have 1", 1,
                       most_of_setting("records-per-lock"), &options->records_per_lock),
      real_list_flag("semantic-shares", by_preset, "of the figures by semantic share; others have 1", 0, 1,
                     &options->semantic_shares),
      number_list_flag("concurrency-limits", by_preset, "kilo: of the figures by limit; 0: it adapts, as in others", 0,
                       most_of_setting("concurrency-limit"), &options->concurrency_limits),
      number_list_flag("sizes", by_preset, "local: buckets, centers, solutions", 2, 256, &options->sizes),
      real_list_flag("thetas", by_preset, "contention: of Zipf's distribution; 0: uniform, 10: one hot row", 0, 10,
                     &options->thetas),
      real_list_flag("update-shares", by_preset, "contention: of operations that write", 0, 1, &options->update_shares),
      number_list_flag("operations", by_preset, "contention: operations of a transaction, each on a row drawn anew", 1,
                       256, &options->operations),
      number_flag("keys", "keys", "of every workload; 0: as the preset has it for each", 0, std::uint64_t{1} << 32,
                  &options->keys),
      number_flag("batch", "transactions", "of each batch; 0: as the preset has it", 0, 1'000'000,
                  &options->batch_transactions),
      number_flag("repeats", "times", "that each point is measured, in turn; 0: as the preset has it", 0, 1000,
                  &options->repeats),
      duration_flag("duration", "of each measurement; 0s: as the preset has it", &options->duration_seconds),
      number_flag("verify", "batches", "that the referee checks before each point; 0: as the preset has it", 0,
                  1'000'000, &options->verify_batches),
      number_flag("seed", "(a number)", "of the generators; the same seed gives the same transactions", 0, ~0ull,
                  &options->seed),
      text_flag("json", "FILE", "where the document goes; -: standard output", &options->json),
      text_flag("html", "FILE", "where the page with plots goes; -: standard output", &options->html),
      text_flag("from", "FILE", "a document of an earlier run: measure nothing, write its page", &options->from),
      switch_flag("help", "print this and exit", &options->help),
  };
}

Status complete(CompareOptions* options) {
  if (Status status = check_outputs(*options); !status.ok()) return status;
  if (options->keys == 1) return Status::invalid({"keys", "2 keys or more", "1", "--keys"});
  if (Status status = check_figures(*options); !status.ok()) return status;
  const CompareOptions preset = preset_values(options->preset);
  fill_in(&options->strategies, figure_set(options->figures).strategies);
  fill_in(&options->workloads, figure_set(options->figures).workloads);
  fill_in(&options->concurrency_limits, preset.concurrency_limits);
  fill_in(&options->sizes, preset.sizes);
  fill_in(&options->thetas, preset.thetas);
  fill_in(&options->update_shares, preset.update_shares);
  fill_in(&options->operations, preset.operations);
  fill_in(&options->threads, threads_of_machine());
  fill_in(&options->records_per_lock, preset.records_per_lock);
  fill_in(&options->semantic_shares, preset.semantic_shares);
  fill_in(&options->batch_transactions, preset.batch_transactions);
  fill_in(&options->repeats, preset.repeats);
  fill_in(&options->verify_batches, preset.verify_batches);
  fill_in(&options->duration_seconds, preset.duration_seconds);
  std::sort(options->threads.begin(), options->threads.end());
  std::sort(options->records_per_lock.begin(), options->records_per_lock.end());
  std::sort(options->semantic_shares.begin(), options->semantic_shares.end());
  std::sort(options->sizes.begin(), options->sizes.end());
  std::sort(options->thetas.begin(), options->thetas.end());
  return {};
}

}  // namespace kilokv::engine::bench
