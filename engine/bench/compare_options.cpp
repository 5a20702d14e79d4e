#include "engine/bench/compare_options.hpp"

#include <algorithm>
#include <thread>

#include "engine/engine.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

namespace {

// A set of figures: its workloads, the strategies that it compares, and the flags that only it has.
struct FigureSet {
  const char* name;
  std::vector<std::string> workloads, strategies, flags;
};

// The workloads that every strategy runs, also in parallel.
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

// The values of a preset. small takes minutes on 2 cores. paper has the sizes and ranges of the papers.
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
    values.batch_transactions = 8192;  // in smaller batches, the fixed cost of a pass would hide the differences
    values.repeats = 3;
    values.verify_batches = 1;
    values.duration_seconds = 0.04;
  }
  return values;
}

// 1, 2, 4 and so on, and the number of cores; at least 2, because one thread has no conflicts.
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

// Refuses what would be ignored because only other figures use it.
Status check_figures(const CompareOptions& options) {
  const FigureSet& chosen = figure_set(options.figures);
  for (const std::string& workload : options.workloads) {
    if (std::find(chosen.workloads.begin(), chosen.workloads.end(), workload) != chosen.workloads.end()) continue;
    std::string names;
    for (const std::string& name : chosen.workloads) names += (names.empty() ? "" : ", ") + name;
    return Status::invalid({"workloads", "with --figures " + options.figures + ": " + names, workload, "--workloads"});
  }
  if (options.figures == "local" && options.keys != 0) {
    return {StatusCode::invalid_argument,
            "--keys does not belong to --figures local: --sizes says how large its workloads are"};
  }
  for (const FigureSet& set : all_figure_sets()) {
    if (&set == &chosen) continue;
    for (const std::string& flag : options.given) {
      if (std::find(set.flags.begin(), set.flags.end(), flag) == set.flags.end()) continue;
      return {StatusCode::invalid_argument,
              "--" + flag + " belongs to --figures " + set.name + ", not to " + chosen.name};
    }
  }
  return {};
}

// Refuses flags that would be ignored because nothing is measured.
Status check_from(const CompareOptions& options) {
  for (const std::string& flag : options.given) {
    if (flag == "from" || flag == "html") continue;
    return {StatusCode::invalid_argument, "--from takes no --" + flag + ": it measures nothing"};
  }
  if (!options.html.empty()) return {};
  return {StatusCode::invalid_argument, "--from needs --html, the file for the page"};
}

Status check_outputs(const CompareOptions& options) {
  if (!options.from.empty()) {
    if (Status status = check_from(options); !status.ok()) return status;
  }
  if (options.html.empty() || (options.html != options.from && options.html != options.json)) return {};
  return {StatusCode::invalid_argument, "--html is \"" + options.html + "\": this is the file of the JSON document"};
}

// The largest value of the setting. Without the strategies that use it, there is no setting and no bound.
std::uint64_t most_of_setting(const char* name) {
  const SettingInfo* const info = find_setting_info(name);
  return info != nullptr ? info->setting.high : UINT32_MAX;
}

}  // namespace

std::vector<std::string> figure_sets() {
  std::vector<std::string> names;
  for (const FigureSet& set : all_figure_sets()) names.push_back(set.name);
  return names;
}

std::vector<Flag> compare_flags(CompareOptions* options) {
  const std::string by_preset = "those of the preset";
  return {
      choice_flag(
          "figures", figure_sets(),
          "what to measure: the figures of the PR-STM, KILO TM or GPU-LocalTM paper, a sweep of contention, or all "
          "workloads",
          &options->figures),
      choice_flag("preset", {"small", "paper"},
                  "sizes and ranges of the measurements: small takes minutes; paper has the sizes of the papers",
                  &options->preset),
      choice_list_flag("strategies", Engine::strategies(), "those of the figures", "strategies to compare",
                       &options->strategies),
      choice_list_flag("workloads", workloads_of_all_sets(), "all of the figures",
                       "workloads of the figures to measure", &options->workloads),
      choice_flag("device", Engine::devices(),
                  "where batches run; auto: on a CUDA device if there is one, else on the CPU", &options->device),
      number_list_flag("threads", "1, 2, 4 ... and one for each core",
                       "threads, in figures by threads; other figures use the largest number", 1,
                       EngineOptions::kThreadsMax, &options->threads),
      number_list_flag("records-per-lock", by_preset,
                       "records per lock, in figures by records per lock; other figures use 1", 1,
                       most_of_setting("records-per-lock"), &options->records_per_lock),
      real_list_flag("semantic-shares", by_preset,
                     "share of semantic transactions, in figures by this share; other figures use 1", 0, 1,
                     &options->semantic_shares),
      number_list_flag("concurrency-limits", by_preset,
                       "kilo: limits of concurrency, in figures by limit; 0: the limit adapts, as in other figures", 0,
                       most_of_setting("concurrency-limit"), &options->concurrency_limits),
      number_list_flag("sizes", by_preset, "local: size of the workloads: number of buckets, centers or solutions", 2,
                       256, &options->sizes),
      real_list_flag("thetas", by_preset, "contention: theta of Zipf's distribution; 0: uniform, 10: one hot row", 0,
                     10, &options->thetas),
      real_list_flag("update-shares", by_preset, "contention: share of operations that write", 0, 1,
                     &options->update_shares),
      number_list_flag("operations", by_preset, "contention: number of operations in a transaction; each draws a row",
                       1, 256, &options->operations),
      number_flag("keys", "keys", "number of keys of every workload; 0: the preset's number for each workload", 0,
                  std::uint64_t{1} << 32, &options->keys),
      number_flag("batch", "transactions", "number of transactions in a batch; 0: the preset's number", 0, 1'000'000,
                  &options->batch_transactions),
      number_flag("repeats", "times", "how often each point is measured; the points take turns; 0: the preset's number",
                  0, 1000, &options->repeats),
      duration_flag("duration", "how long each measurement lasts; 0s: the preset's duration",
                    &options->duration_seconds),
      number_flag("verify", "batches",
                  "number of batches that the referee checks before each point; 0: the preset's number", 0, 1'000'000,
                  &options->verify_batches),
      number_flag("seed", "(a number)", "seed of the workloads; the same seed makes the same transactions", 0, ~0ull,
                  &options->seed),
      text_flag("json", "FILE", "file for the JSON document; -: standard output", &options->json),
      text_flag("html", "FILE", "file for the page with plots; -: standard output", &options->html),
      text_flag("from", "FILE",
                "JSON document of an earlier run: nothing is measured, and its page is written to --html",
                &options->from),
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
