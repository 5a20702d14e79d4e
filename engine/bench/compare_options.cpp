#include "engine/bench/compare_options.hpp"

#include <algorithm>
#include <thread>

#include "engine/engine.hpp"

namespace kilokv::engine::bench {

namespace {

// One that takes minutes on 2 cores, and one with the sizes and ranges of the paper.
CompareOptions preset_values(const std::string& name) {
  CompareOptions values;
  if (name == "paper") {
    values.records_per_lock = {1, 4, 16, 64, 256, 1024, 4096};
    values.semantic_shares = {0, 0.05, 0.1, 0.25, 0.5, 0.75, 1};
    values.batch_transactions = 16'384;
    values.repeats = 5;
    values.verify_batches = 2;
    values.duration_seconds = 1;
  } else {
    values.records_per_lock = {1, 16, 256, 4096};
    values.semantic_shares = {0, 0.05, 0.25, 1};
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

}  // namespace

std::vector<Flag> compare_flags(CompareOptions* options) {
  const std::string by_preset = "as the preset has it";
  return {
      choice_flag("preset", {"small", "paper"}, "small takes minutes; paper has the sizes of the PR-STM paper",
                  &options->preset),
      choice_list_flag("strategies", Engine::strategies(), "which ones take turns", &options->strategies),
      choice_list_flag("workloads", CompareOptions().workloads, "of which figures", &options->workloads),
      choice_flag("device", Engine::devices(), "where batches run; auto: a CUDA device where there is one",
                  &options->device),
      number_list_flag("threads", "1, 2, 4 ... and one for each core",
                       "of the figures by threads; others have the most", 1, EngineOptions::kThreadsMax,
                       &options->threads),
      number_list_flag("records-per-lock", by_preset, "of the figures by records per lock; others have 1", 1,
                       EngineOptions::kPerLockMax, &options->records_per_lock),
      share_list_flag("semantic-shares", by_preset, "of the figures by semantic share; others have 1",
                      &options->semantic_shares),
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
  const CompareOptions preset = preset_values(options->preset);
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
  return {};
}

}  // namespace kilokv::engine::bench
