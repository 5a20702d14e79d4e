#include "engine/bench/compare_run.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace kilokv::engine::bench {

namespace {

// The first batches are not measured, because `auto` times each of its strategies in them: a try and its check take
// eight batches, and two come before. The strategies that it is compared with also begin after these batches, at the
// same batch.
constexpr std::uint64_t kWarmUpBatches = 32;

constexpr const char* kTimes = "stage-times";  // the setting that makes a strategy measure where its time goes

// Batches in a repeat. In a repeat of fewer batches, one slow batch would count too much.
constexpr std::uint64_t kBatchesMin = 5;

std::uint64_t warm_up_batches(const CompareOptions& options, std::uint64_t batches) {
  const bool has_auto =
      std::find(options.strategies.begin(), options.strategies.end(), "auto") != options.strategies.end();
  return has_auto && batches == 0 ? kWarmUpBatches : 0;
}

// One strategy on one graph, at one value of the axis.
struct Lane {
  ComparePoint point;
  std::unique_ptr<WorkloadRun> run;
};

BenchOptions bench_options(const CompareOptions& options, const WorkloadOptions& workload, const ComparePoint& point) {
  BenchOptions bench;
  bench.device = options.device;
  bench.strategy = point.strategy;
  bench.threads = point.setting.threads;
  const StrategyInfo* const strategy = find_strategy_info(point.strategy);
  const auto set = [&](const char* setting, std::uint64_t value) {
    if (strategy != nullptr && strategy->has_setting(setting)) bench.settings[setting] = std::to_string(value);
  };
  set("records-per-lock", point.setting.records_per_lock);
  set("concurrency-limit", point.setting.concurrency_limit);
  bench.batch_transactions = options.batch_transactions;
  bench.batches = batches_at(options, workload);
  bench.warmup_batches = warm_up_batches(options, bench.batches);
  bench.batches_min = kBatchesMin;
  bench.duration_seconds = options.duration_seconds;
  bench.seed = options.seed;
  return bench;
}

Status open_lane(const CompareOptions& options, Lane* lane) {
  const WorkloadOptions workload = workload_at(options, lane->point.setting);
  const BenchOptions bench = bench_options(options, workload, lane->point);
  auto run = WorkloadRun::create(bench, workload);
  if (!run.ok()) return run.status();
  lane->run = std::move(*run);
  lane->point.warmed_up = bench.warmup_batches * options.batch_transactions;
  lane->point.verified = options.verify_batches * options.batch_transactions;
  return lane->run->verify(options.verify_batches);
}

Status repeat_lane(Lane* lane) {
  const std::uint64_t decided_before = lane->run->report().counts.decided();
  const double seconds_before = lane->run->report().seconds;
  if (Status status = lane->run->run(); !status.ok()) return status;
  const WorkloadReport& report = lane->run->report();
  lane->point.per_second.push_back(static_cast<double>(report.counts.decided() - decided_before) /
                                   (report.seconds - seconds_before));
  return {};
}

Status close_lane(Lane* lane) {
  Status status = lane->run->check_invariant();
  lane->point.report = lane->run->report();
  return status;
}

Status run_timed(const CompareOptions& options, ComparePoint* point) {
  const WorkloadOptions workload = workload_at(options, point->setting);
  BenchOptions bench = bench_options(options, workload, *point);
  bench.settings[kTimes] = "on";
  auto run = WorkloadRun::create(bench, workload);
  if (!run.ok()) return run.status();
  Status status = (*run)->verify(options.verify_batches);
  if (status.ok()) status = (*run)->run();
  if (status.ok()) status = (*run)->check_invariant();
  point->timed = (*run)->report().execution;
  return status;
}

Status with_place(const Status& status, const ComparePanel& panel, const ComparePoint& point) {
  return {status.code(), status.reason(),
          panel.name(point.graph.letter) + ", " + point.setting.workload + ", " + to_string(panel.axis) + " " +
              panel.value_name(point.value) + ", strategy " + point.strategy + ": " + status.message()};
}

std::vector<Lane> lanes_at(const CompareOptions& options, const ComparePanel& panel, double value) {
  std::vector<Lane> lanes;
  for (const CompareGraph& graph : panel.graphs) {
    for (const std::string& strategy : options.strategies) {
      if (!measures(panel, strategy)) continue;
      Lane& lane = lanes.emplace_back();
      lane.point.value = value;
      lane.point.graph = graph;
      lane.point.strategy = strategy;
      lane.point.setting = setting_at(options, panel, graph, value);
    }
  }
  return lanes;
}

template <class Step>
Status for_each_lane(const ComparePanel& panel, std::vector<Lane>* lanes, std::size_t first, const Step& step) {
  for (std::size_t i = 0; i < lanes->size(); ++i) {
    Lane& lane = (*lanes)[(first + i) % lanes->size()];
    if (Status status = step(&lane); !status.ok()) return with_place(status, panel, lane.point);
  }
  return {};
}

}  // namespace

bool measures(const ComparePanel& panel, const std::string& strategy) {
  return panel.only.empty() || std::find(panel.only.begin(), panel.only.end(), strategy) != panel.only.end();
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double least_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

double most_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

Result<std::vector<ComparePoint>> measure_panel(const CompareOptions& options, const ComparePanel& panel,
                                                const CompareProgress& progress) {
  std::vector<ComparePoint> points;
  for (const double value : panel.values) {
    std::vector<Lane> lanes = lanes_at(options, panel, value);
    Status status = for_each_lane(panel, &lanes, 0, [&](Lane* lane) { return open_lane(options, lane); });
    for (std::uint64_t repeat = 0; status.ok() && repeat < options.repeats; ++repeat) {
      status = for_each_lane(panel, &lanes, repeat, repeat_lane);
    }
    if (status.ok()) status = for_each_lane(panel, &lanes, 0, close_lane);
    for (Lane& lane : lanes) lane.run.reset();
    if (status.ok()) {
      status = for_each_lane(panel, &lanes, 0, [&](Lane* lane) {
        const StrategyInfo* const strategy = find_strategy_info(lane->point.strategy);
        const bool has_times = panel.has_times && strategy != nullptr && strategy->has_setting(kTimes);
        return has_times ? run_timed(options, &lane->point) : Status();
      });
    }
    if (!status.ok()) return status;
    for (Lane& lane : lanes) {
      progress(panel, lane.point);
      points.push_back(std::move(lane.point));
    }
  }
  return points;
}

}  // namespace kilokv::engine::bench
