#include "engine/bench/runner.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/referee/referee.hpp"
#include "engine/strategies.hpp"

namespace kilokv::engine::bench {

namespace {

constexpr TimeUs kFirstStampUs = 1'000'000;  // stamps are part of the input, so they come from no clock
constexpr Version kLoadVersion = 1;
constexpr std::string_view kTimePrefix = "time_";  // prefix of the counters that are times

}  // namespace

bool is_time(std::string_view counter) { return counter.starts_with(kTimePrefix); }

void Counts::add(const BatchResults& results, const WriteColumns& batch_writes) {
  ++batches;
  transactions += results.outcome.size();
  passes += results.passes;
  writes += batch_writes.size();
  range_pairs += results.pair_cell.size();
  for (const std::uint8_t outcome : results.outcome) {
    switch (static_cast<Outcome>(outcome)) {
      case Outcome::undecided: break;
      case Outcome::committed: ++committed; break;
      case Outcome::guard_failed: ++guard_failed; break;
      case Outcome::wait_expired: ++wait_expired; break;
      case Outcome::overflow: ++overflow; break;
      case Outcome::type_mismatch: ++type_mismatch; break;
      case Outcome::postponed: ++postponed; break;
    }
  }
}

void ExecutionTotals::add(const ExecutionReport& batch) {
  stages.add(batch.stages);
  if (std::string_view(batch.strategy) == "serial") {
    ++serial_batches;
    return;
  }
  if (std::string_view(batch.strategy) == "pipelined") {
    ++pipelined_batches;
    return;
  }
  const bool is_partitioned = std::string_view(batch.strategy) == "partitioned";
  ++(is_partitioned ? partitioned_batches : batch.any_order ? ticketed_batches : ordered_batches);
  device_batches += batch.on_device ? 1 : 0;
  for (const Counter& counter : batch.counters) counters.add(counter.name, counter.value, counter.kind);
  sent_bytes += batch.sent_bytes;
  returned_bytes += batch.returned_bytes;
  sent_seconds += batch.sent_seconds;
  kernel_seconds += batch.kernel_seconds;
  returned_seconds += batch.returned_seconds;
  postponed += batch.postponed;
  decided_by.resize(std::max(decided_by.size(), batch.decided_by.size()));
  for (std::size_t i = 0; i < batch.decided_by.size(); ++i) decided_by[i] += batch.decided_by[i];
}

std::vector<std::pair<std::string, double>> ExecutionTotals::times() const {
  std::vector<std::pair<std::string, double>> times;
  double all = 0;
  for (const Counter& counter : counters) {
    const std::string_view name = counter.name;
    if (!is_time(name)) continue;
    all += static_cast<double>(counter.value);
    times.emplace_back(name.substr(kTimePrefix.size()), static_cast<double>(counter.value));
  }
  if (all == 0) return {};
  for (auto& [name, time] : times) time /= all;
  return times;
}

double ExecutionTotals::serialized_share() const {
  const std::uint64_t attempts_there = counter("staged") + counter("lane_restarts");
  if (attempts_there == 0) return 0;
  return static_cast<double>(counter("warp_serialized")) / static_cast<double>(attempts_there);
}

double WorkloadReport::nanoseconds_per_transaction() const {
  return counts.transactions == 0 ? 0 : seconds * 1e9 / static_cast<double>(counts.transactions);
}

double WorkloadReport::aborts_per_commit() const {
  if (counts.committed == 0) return 0;
  return static_cast<double>(execution.counter("conflicts")) / static_cast<double>(counts.committed);
}

double WorkloadReport::transactions_per_second() const {
  return seconds == 0 ? 0 : static_cast<double>(counts.transactions) / seconds;
}

Result<std::unique_ptr<WorkloadRun>> WorkloadRun::create(const BenchOptions& options,
                                                         const WorkloadOptions& workload_options) {
  auto workload = Workload::create(workload_options);
  if (!workload.ok()) return workload.status();
  EngineOptions engine_options = engine_options_of(options);
  engine_options.secret = {options.seed, ~options.seed};
  engine_options.expected_records = workload_options.keys;
  auto engine = Engine::create(engine_options);
  if (!engine.ok()) return engine.status();
  const EngineDevice device = (*engine)->device();
  const StrategyInfo* const strategy = find_strategy_info(options.strategy);
  const bool stays_on_cpu = strategy != nullptr && strategy->stays_on_cpu;
  const bool needs_device = options.device != "auto" && options.device != "cpu" && !stays_on_cpu;
  if (needs_device && device.name != options.device) {
    return Status(StatusCode::unavailable, ErrorReason::unspecified,
                  "--device " + options.device + ": " + device.reason);
  }
  std::unique_ptr<WorkloadRun> run(new WorkloadRun(options, std::move(*workload), std::move(*engine)));
  run->secret_ = engine_options.secret;
  run->needs_device_ = needs_device;
  if (Status status = run->load(); !status.ok()) return status;
  if (Status status = run->warm_up(); !status.ok()) return status;
  return run;
}

WorkloadRun::WorkloadRun(const BenchOptions& options, Workload workload, std::unique_ptr<Engine> engine)
    : options_(options), workload_(std::move(workload)), engine_(std::move(engine)) {
  report_.workload = workload_.options();
  header_ = {0, kFirstStampUs, kLoadVersion + 1};
}

Status WorkloadRun::load() {
  Status status;
  workload_.for_each_initial([&](const InitialRecord& record) {
    if (status.ok()) status = engine_->load(record.key, kLoadVersion, record.type, record.integer, record.bytes);
  });
  engine_->clear_dirty();
  engine_->prepare();
  if (status.ok() && options_.verify) model_ = model_of(*engine_);
  return status;
}

// The first batches are slow: memory is allocated, and `auto` tries strategies.
Status WorkloadRun::warm_up() {
  while (report_.counts.batches < options_.warmup_batches) {
    if (Status status = run_batch(next_batch()); !status.ok()) return status;
  }
  const WorkloadOptions workload = report_.workload;
  report_ = {};
  report_.workload = workload;
  return {};
}

void WorkloadRun::generate_chunk() {
  next_in_chunk_ = 0;
  const std::size_t each = static_cast<std::size_t>(options_.batch_transactions) * workload_.options().ycsb.operations;
  const std::size_t batches = kChunkTransactions / each;
  chunk_.resize(std::clamp<std::size_t>(batches, 1, kChunkBatches));
  for (TransactionColumns& columns : chunk_) {
    columns.clear();
    ColumnsBuilder builder(&columns, secret_);
    workload_.generate(&builder, options_.batch_transactions);
  }
}

// Every generated batch runs, in order, because a generator may depend on this.
const TransactionColumns& WorkloadRun::next_batch() {
  if (next_in_chunk_ == chunk_.size()) generate_chunk();
  return chunk_[next_in_chunk_++];
}

Status WorkloadRun::run() {
  const Stopwatch run_watch;
  const std::uint64_t batches_before = report_.counts.batches;
  const double seconds_before = report_.seconds;
  const auto is_done = [&] {
    const std::uint64_t batches = report_.counts.batches - batches_before;
    if (options_.batches != 0) return batches >= options_.batches;
    if (batches < options_.batches_min) return false;
    const double seconds = options_.verify ? run_watch.seconds() : report_.seconds - seconds_before;
    return seconds >= options_.duration_seconds;
  };
  while (!is_done()) {
    if (Status status = run_batch(next_batch()); !status.ok()) return status;
  }
  report_.verified = options_.verify;
  report_.stats = engine_->stats();
  report_.device = engine_->device();
  return model_ ? check_state(*model_, *engine_) : Status();
}

Status WorkloadRun::verify(std::uint64_t batches) {
  const WorkloadReport report_before = report_;
  Status status;
  for (std::uint64_t i = 0; status.ok() && i < batches; ++i) {
    const TransactionColumns& columns = next_batch();
    model_ = model_of_keys(*engine_, columns);
    status = run_batch(columns);
    if (status.ok()) status = check_keys(*model_, *engine_, columns);
  }
  model_.reset();
  report_ = report_before;
  if (status.ok() && engine_->state_hash() != engine_->compute_state_hash()) {
    status = {StatusCode::internal, "state hash: the one kept up to date differs from the one computed from the table"};
  }
  return status;
}

Status WorkloadRun::run_batch(const TransactionColumns& columns) {
  ++header_.number;
  header_.time_us += 1000;
  // Nothing is parked here. A transaction whose wait timeout is 0 expires. The other postponed ones are counted and
  // dropped.
  expires_.resize(columns.size());
  for (std::size_t t = 0; t < columns.size(); ++t) expires_[t] = columns.wait_timeout_us[t] == 0 ? 1 : 0;

  Stopwatch watch;
  if (Status status = engine_->execute(header_, columns, expires_, &results_, &writes_); !status.ok()) return status;
  if (Status status = check_device(columns); !status.ok()) return status;
  if (model_) {
    add_time(watch);
    if (Status status = verify_batch(header_, columns); !status.ok()) return status;
    watch = Stopwatch();
  }
  engine_->release_through(header_.number);
  add_time(watch);
  report_.counts.add(results_, writes_);
  report_.execution.add(engine_->execution());
  header_.first_version = results_.next_version;
  return {};
}

// If a device was named, what is measured or checked must run on this device. The engine would go on without it.
Status WorkloadRun::check_device(const TransactionColumns& columns) const {
  if (!needs_device_) return {};
  const ExecutionReport& execution = engine_->execution();
  const std::string device = "--device " + options_.device;
  if (execution.devices_lost > 0)
    return {StatusCode::unavailable, ErrorReason::failed, device + ": " + engine_->device().reason};
  const bool is_for_serial = columns.empty() || !columns.range_limit.empty();
  if (execution.on_device || is_for_serial || options_.strategy == "auto") return {};
  return {StatusCode::unavailable, ErrorReason::failed, device + " had no memory for a batch, which ran on the CPU"};
}

void WorkloadRun::add_time(const Stopwatch& watch) {
  report_.seconds += watch.seconds();
  report_.processor_seconds += watch.processor_seconds();
}

Status WorkloadRun::verify_batch(const BatchHeader& header, const TransactionColumns& columns) {
  const auto bytes_of = [&](Cell cell) { return engine_->bytes_of(cell); };
  return check_execution({header, columns, expires_, results_, writes_, bytes_of}, referee_mode(engine_->execution()),
                         &*model_);
}

Status WorkloadRun::check_invariant() {
  InvariantCheck invariant = workload_.invariant();
  engine_->scan({}, {}, [&](const RecordView& record) {
    invariant.add(record.key, type_of(record.cell.tag), static_cast<std::int64_t>(record.cell.word), record.bytes);
    return true;
  });
  report_.invariant = invariant.statement();
  if (const std::string violation = invariant.violation(); !violation.empty()) {
    return {StatusCode::internal, "invariant of " + workload_.options().name + ": " + violation};
  }
  return {};
}

}  // namespace kilokv::engine::bench
