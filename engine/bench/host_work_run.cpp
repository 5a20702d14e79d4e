#include "engine/bench/host_work_run.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <tuple>
#include <utility>

#include "engine/bench/compare_run.hpp"
#include "engine/engine.hpp"
#include "engine/engine_on_device.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/platform/stopwatch.hpp"

namespace kilokv::engine::bench {
namespace {

constexpr TimeUs kFirstStampUs = 1'000'000;
constexpr Version kLoadVersion = 1;
constexpr std::size_t kBatchesMin = 8;
// A slice is a number of batches that one of the two runs before the other's turn.
constexpr std::size_t kSliceTransactions = std::size_t{1} << 16;

// The size of the last-level cache, or 32 MiB if the system does not say it.
std::size_t cache_bytes() {
  std::size_t most = std::size_t{32} << 20;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::size_t size = 0;
    char unit = 0;
    if (!(file >> size)) continue;
    file >> unit;
    most = std::max(most, size << (unit == 'M' ? 20 : (unit == 'K' ? 10 : 0)));
  }
  return most;
}

// What a batch leaves.
struct BatchEnd {
  BatchResults results;
  WriteColumns writes;
  std::vector<BeforeImage> before_images;
  std::size_t dirty = 0;
  Hash128 hash;
};

template <class T>
bool equal(const Column<T>& a, const Column<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool equal_operations(const TransactionColumns& columns, const BatchResults& a, const BatchResults& b) {
  for (std::uint32_t t = 0; t < columns.size(); ++t) {
    const auto outcome = static_cast<Outcome>(a.outcome[t]);
    if (outcome != Outcome::committed && outcome != Outcome::guard_failed) continue;
    const OperationRange ran = operations_run(columns, a, t);
    for (std::uint32_t op = ran.begin; op < ran.end; ++op) {
      if (a.op_flags[op] != b.op_flags[op] || a.op_cell[op].tag != b.op_cell[op].tag) return false;
      const bool bytes = type_of(a.op_cell[op].tag) == ValueType::bytes;  // handles of two engines differ
      if (!bytes && a.op_cell[op].word != b.op_cell[op].word) return false;
    }
  }
  return true;
}

// Names what differs. Empty: nothing does.
std::string difference(const TransactionColumns& columns, BatchEnd* a, BatchEnd* b) {
  const BatchResults &x = a->results, &y = b->results;
  if (x.passes != y.passes || x.next_version != y.next_version) return "passes";
  if (!equal(x.outcome, y.outcome) || !equal(x.failed_in, y.failed_in)) return "outcomes";
  if (!equal(x.failed_index, y.failed_index) || !equal(x.rank, y.rank) || !equal(x.wrote, y.wrote)) return "ranks";
  if (!equal_operations(columns, x, y)) return "operations";
  const WriteColumns &v = a->writes, &w = b->writes;
  if (!equal(v.rank, w.rank) || !equal(v.type, w.type) || !equal(v.word, w.word)) return "log columns";
  if (!equal(v.key_end, w.key_end) || !equal(v.key_bytes, w.key_bytes)) return "keys of the log columns";
  if (!equal(v.value_end, w.value_end) || !equal(v.value_bytes, w.value_bytes)) return "values of the log columns";
  const auto less = [](const BeforeImage& i, const BeforeImage& j) {
    return std::tie(i.id.high, i.id.low) < std::tie(j.id.high, j.id.low);
  };
  std::sort(a->before_images.begin(), a->before_images.end(), less);
  std::sort(b->before_images.begin(), b->before_images.end(), less);
  const auto same = [](const BeforeImage& i, const BeforeImage& j) { return i.id == j.id && i.cell.tag == j.cell.tag; };
  if (!std::equal(a->before_images.begin(), a->before_images.end(), b->before_images.begin(), b->before_images.end(),
                  same)) {
    return "before-images";
  }
  if (a->dirty != b->dirty) return "dirty marks";
  return a->hash == b->hash ? "" : "state hash";
}

// The batches of one repeat. Each runs once on each engine.
struct Batches {
  std::vector<TransactionColumns> columns;
  std::size_t bytes = 0;
};

// An engine that runs the batches in order.
class Side {
 public:
  Side(std::unique_ptr<Engine> engine, const DeviceCalls* calls) : engine_(std::move(engine)), calls_(calls) {}

  Status load(const Workload& workload) {
    Status status;
    workload.for_each_initial([&](const InitialRecord& record) {
      if (status.ok()) status = engine_->load(record.key, kLoadVersion, record.type, record.integer, record.bytes);
    });
    engine_->clear_dirty();
    engine_->prepare();
    return status;
  }

  // Runs the batches from `first` on, one for each of `ends`. Returns the time of each transaction.
  Result<HostWorkTime> run(const Batches& batches, std::size_t first, std::vector<BatchEnd>* ends) {
    double all = 0, own = 0;
    std::size_t transactions = 0;
    for (std::size_t i = 0; i < ends->size(); ++i) {
      const TransactionColumns& columns = batches.columns[first + i];
      BatchEnd& end = (*ends)[i];
      header_.number += 1;
      header_.time_us += 1000;
      expires_.assign(columns.size(), 1);
      const DeviceCalls before = calls_ == nullptr ? DeviceCalls{} : *calls_;
      const double begun = Stopwatch::process_now();
      const Stopwatch watch;
      Status status = engine_->execute(header_, columns, expires_, &end.results, &end.writes);
      if (!status.ok()) return status;
      const std::vector<BeforeImage>& images = engine_->before_images();
      engine_->release_through(header_.number);
      const DeviceCalls after = calls_ == nullptr ? DeviceCalls{} : *calls_;
      const double device = after.left_out_seconds - before.left_out_seconds;
      own += watch.processor_seconds() - device;
      all += Stopwatch::process_now() - begun - (after.left_out_of_all - before.left_out_of_all);
      transactions += columns.size();
      end.before_images = images;
      end.dirty = engine_->dirty_count();
      end.hash = engine_->state_hash();
      stages_.add(engine_->execution().stages);
      stages_.subtract(BatchStage::run, {device, device, device});
      header_.first_version = end.results.next_version;
      if (calls_ != nullptr && !engine_->execution().on_device) {
        return Status(StatusCode::internal, "a batch did not run on the device: " + engine_->device().reason);
      }
    }
    const double each = 1e9 / static_cast<double>(transactions);
    return HostWorkTime{all * each, std::max(own, all - own) * each};
  }
  const StageTimes& stages() const { return stages_; }
  bool holds_hash() const { return engine_->compute_state_hash() == engine_->state_hash(); }

 private:
  std::unique_ptr<Engine> engine_;
  const DeviceCalls* calls_;
  BatchHeader header_{0, kFirstStampUs, kLoadVersion + 1};
  Column<std::uint8_t> expires_;
  StageTimes stages_;
};

double median_of_field(const std::vector<HostWorkTime>& times, double HostWorkTime::*field) {
  std::vector<double> numbers;
  numbers.reserve(times.size());
  for (const HostWorkTime& time : times) numbers.push_back(time.*field);
  return median_of(numbers);
}

HostWorkTime median_of_times(const std::vector<HostWorkTime>& times) {
  return {median_of_field(times, &HostWorkTime::all), median_of_field(times, &HostWorkTime::longest)};
}

// One repeat: fresh engines, fresh batches.
class Repeat {
 public:
  Repeat(const HostWorkOptions& options, const HostWorkRow& row, std::uint64_t seed, bool measures_stages)
      : options_(options), row_(row), measures_stages_(measures_stages) {
    workload_options_ = {.name = row.workload, .keys = row.keys, .seed = seed};
    workload_options_.ycsb = {static_cast<std::uint32_t>(row.payload_bytes), static_cast<std::uint32_t>(row.operations),
                              0.5};
  }

  Status run(HostWorkPoint* point) {
    Status status = generate();
    if (status.ok()) status = record();
    if (status.ok()) status = open(&serial_, "serial", nullptr);
    if (status.ok()) status = open(&host_, "ordered", &calls_);
    if (status.ok()) status = take_turns(point);
    if (!status.ok()) return status;
    if (!serial_->holds_hash() || !host_->holds_hash()) return {StatusCode::internal, "a state hash is wrong"};
    point->batches = batches_.columns.size();
    point->buffer_bytes = batches_.bytes + recording_.bytes.size();
    point->calls = calls_;
    point->is_live = is_live();
    return {};
  }

 private:
  Status generate() {
    auto workload = Workload::create(workload_options_);
    if (!workload.ok()) return workload.status();
    const std::size_t wanted = options_.buffers_mib != 0 ? options_.buffers_mib << 20 : cache_bytes() / 10 * 11;
    const std::size_t slice = slice_batches();
    while (batches_.bytes < wanted || batches_.columns.size() < kBatchesMin || batches_.columns.size() % slice != 0) {
      TransactionColumns& columns = batches_.columns.emplace_back();
      ColumnsBuilder builder(&columns, secret());
      workload->generate(&builder, row_.batch_transactions);
      batches_.bytes += columns.memory_bytes();
    }
    return {};
  }

  // Runs all batches on the emulated device.
  Status record() {
    if (is_live()) return {};
    DeviceCalls calls;
    auto engine = create_engine_on(engine_options("ordered"), open_recording(open_emulated(), &recording_, &calls));
    if (!engine.ok()) return engine.status();
    Side recorder(std::move(*engine), &calls);
    if (Status status = load(&recorder); !status.ok()) return status;
    std::vector<BatchEnd> end(1);
    for (std::size_t i = 0; i < batches_.columns.size(); ++i) {
      if (auto time = recorder.run(batches_, i, &end); !time.ok()) return time.status();
    }
    return {};
  }

  Status open(std::unique_ptr<Side>* side, const std::string& strategy, DeviceCalls* calls) {
    auto engine = calls == nullptr ? Engine::create(engine_options(strategy))
                                   : create_engine_on(engine_options(strategy), open_device(calls));
    if (!engine.ok()) return engine.status();
    *side = std::make_unique<Side>(std::move(*engine), calls);
    Status status = load(side->get());
    if (calls != nullptr) *calls = {};  // those of the load do not count
    return status;
  }

  OpenedDevice open_device(DeviceCalls* calls) const {
    return is_live() ? open_live(open_emulated(), calls) : open_replayed(open_emulated(), &recording_, calls);
  }
  bool is_live() const { return !batches_.columns.front().value_end.empty(); }

  Status load(Side* side) {
    auto workload = Workload::create(workload_options_);
    return workload.ok() ? side->load(*workload) : workload.status();
  }

  Status take_turns(HostWorkPoint* point) {
    const std::size_t slice = slice_batches();
    std::vector<HostWorkTime> serial, host;
    std::vector<BatchEnd> serial_ends(slice), host_ends(slice);
    for (std::size_t first = 0; first < batches_.columns.size(); first += slice) {
      const bool serial_first = first / slice % 2 == 0;
      for (const bool is_serial : {serial_first, !serial_first}) {
        auto time = is_serial ? serial_->run(batches_, first, &serial_ends) : host_->run(batches_, first, &host_ends);
        if (!time.ok()) return time.status();
        (is_serial ? serial : host).push_back(*time);
      }
      for (std::size_t i = 0; i < slice; ++i) {
        const std::string differs = difference(batches_.columns[first + i], &serial_ends[i], &host_ends[i]);
        if (differs.empty()) continue;
        return {StatusCode::internal, "batch " + std::to_string(first + i) + " differs from serial: " + differs};
      }
    }
    if (measures_stages_) {
      point->serial_stages = serial_->stages();
      point->host_stages = host_->stages();
      point->staged_transactions = batches_.columns.size() * row_.batch_transactions;
      return {};
    }
    point->serial.push_back(median_of_times(serial));
    point->host.push_back(median_of_times(host));
    point->ratios.push_back(point->host.back().all / point->serial.back().all);
    return {};
  }

  std::size_t slice_batches() const { return std::max<std::size_t>(1, kSliceTransactions / row_.batch_transactions); }
  KeyHashSecret secret() const { return {workload_options_.seed, ~workload_options_.seed}; }
  EngineOptions engine_options(const std::string& strategy) const {
    EngineOptions engine;
    engine.strategy = strategy;
    engine.secret = secret();
    engine.expected_records = workload_options_.keys;
    engine.threads = static_cast<std::uint32_t>(options_.threads);
    engine.measure_stages = measures_stages_;
    return engine;
  }

  const HostWorkOptions& options_;
  const HostWorkRow& row_;
  WorkloadOptions workload_options_;
  const bool measures_stages_;
  Batches batches_;
  DeviceRecording recording_;
  DeviceCalls calls_;
  std::unique_ptr<Side> serial_, host_;
};

}  // namespace

std::vector<Flag> host_work_flags(HostWorkOptions* options) {
  return {
      text_flag("workload", "NAME", "measure this workload; empty: the rows for which the project has targets",
                &options->workload),
      number_flag("keys", "keys", "--workload: number of keys", 2, std::uint64_t{1} << 30, &options->keys),
      number_flag("batch", "transactions", "--workload: number of transactions in a batch", 1, 1'000'000,
                  &options->batch_transactions),
      number_flag("operations", "operations", "--workload ycsb-*: operations in a transaction", 1, 1024,
                  &options->operations),
      number_flag("payload", "bytes", "--workload ycsb-*: size of a value in bytes", 0, 1 << 20,
                  &options->payload_bytes),
      number_flag("threads", "threads", "threads of the host for a batch on a device; 0: one for each core", 0,
                  EngineOptions::kThreadsMax, &options->threads),
      number_flag("repeats", "repeats", "how often to measure, each time with new engines and batches", 1, 1000,
                  &options->repeats),
      number_flag("seed", "", "seed of the first repeat; each further repeat has the next one", 0, ~0ull >> 1,
                  &options->seed),
      number_flag("buffers", "MiB", "least size of the batches of a repeat; 0: a tenth more than the last-level cache",
                  0, 1 << 20, &options->buffers_mib),
      text_flag("json", "FILE", "write one JSON document to this file; -: to the standard output", &options->json),
      switch_flag("help", "print this and exit", &options->help),
  };
}

std::vector<HostWorkRow> host_work_rows(const HostWorkOptions& options) {
  if (!options.workload.empty()) {
    return {{options.workload, options.keys, options.batch_transactions, options.operations, options.payload_bytes}};
  }
  return {
      {"bank", 100'000, 1024, 1, 100},           {"bank", 100'000, 8192, 1, 100},
      {"bank", 2'500'000, 65'536, 1, 100},       {"bank", 2'500'000, 262'144, 1, 100},
      {"hot-deposits", 100'000, 65'536, 1, 100}, {"ycsb-a", 500'000, 65'536, 16, 100},
  };
}

Result<HostWorkPoint> measure_host_work(const HostWorkOptions& options, const HostWorkRow& row) {
  HostWorkPoint point;
  point.row = row;
  for (std::uint64_t i = 0; i <= options.repeats; ++i) {
    Repeat repeat(options, row, options.seed + i, i == options.repeats);
    if (Status status = repeat.run(&point); !status.ok()) return status;
  }
  return point;
}

}  // namespace kilokv::engine::bench
