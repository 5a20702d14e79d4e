#include "engine/exec/device/device_executor.hpp"

#include <iterator>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/exec/strategy.hpp"

namespace kilokv::engine {

namespace {

// Whether the results are within their bounds. Later code uses them as indices. Requires: there is a pass.
bool is_plausible(const BatchResults& results) {
  const std::uint64_t n = results.outcome.size();
  if (results.passes > kWaitPassesMax) return false;
  for (std::size_t t = 0; t < n; ++t) {
    const auto outcome = static_cast<Outcome>(results.outcome[t]);
    const bool waited = outcome == Outcome::wait_expired || outcome == Outcome::postponed;
    if (outcome == Outcome::undecided || outcome > Outcome::postponed || results.wrote[t] > (waited ? 0 : 1)) {
      return false;
    }
    if (results.rank[t] >= (results.passes + (waited ? 1 : 0)) * n) return false;
  }
  return true;
}

}  // namespace

DeviceExecutor::DeviceExecutor(OpenedDevice opened, std::vector<std::string> strategies, const SettingTexts& settings,
                               FirstEpochs first)
    : opened_(std::move(opened)),
      names_(std::move(strategies)),
      table_(opened_.device.get(), opened_.kernels.get(), first.table),
      block_(opened_.device.get()),
      validator_(opened_.device.get(), opened_.kernels.get()) {
  for (const std::string& name : names_) {
    const Strategy* const strategy = find_strategy(name);
    KILOKV_CHECK(strategy != nullptr && strategy->make_device != nullptr);
    strategies_.push_back(strategy->make_device({opened_.device.get(), opened_.kernels.get(), first}, settings));
  }
  use(0);
}

Status DeviceExecutor::prepare(const RecordStore& store) {
  if (!has_stream_) {
    if (Status status = create_stream(); !status.ok()) return status;
  }
  return table_.update(stream_, store);
}

Status DeviceExecutor::create_stream() {
  for (DeviceEvent& mark : marks_) {
    const auto event = opened_.device->create_event();
    if (!event.ok()) return event.status();
    mark = *event;
  }
  const auto stream = opened_.device->create_stream();
  if (!stream.ok()) return stream.status();
  stream_ = *stream;
  has_stream_ = true;
  return {};
}

Status DeviceExecutor::run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                           ExecutionReport* report) {
  batch.clock.enter(BatchStage::pack);
  Status status = prepare(batch.store);
  if (status.ok()) status = bind(batch, records, results);
  if (!status.ok()) return status;
  block_.pack();
  batch.clock.enter(BatchStage::run);
  status = launch();
  batch.clock.enter(BatchStage::unpack);
  return status.ok() ? unpack(results, report) : status;
}

Status DeviceExecutor::validate(const RecordStore& store, const ReadSet& set, ValidatorLanes lanes,
                                ValidatorResult* result) {
  const Status status = prepare(store);
  return status.ok() ? validator_.run(stream_, table_, set, lanes, result) : status;
}

Status DeviceExecutor::bind(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results) {
  const std::size_t keys = batch.columns.key_id.size();
  if (strategy_->needs_numbers()) {
    records->number(batch.columns, batch.resolver);
  } else {
    records->leave(batch.columns);
  }
  block_.clear();
  strategy_->open(batch, records, results, &block_);
  const BulkShape shape{keys, 0, heads_for(keys)};
  bulk_on_host_ = {};
  bulk_on_host_.size = static_cast<std::uint32_t>(keys);
  bulk_on_host_.heads_mask = static_cast<std::uint32_t>(shape.heads - 1);
  bulk_on_host_.numbers_records = !strategy_->needs_numbers();
  bulk_on_host_.ids = batch.columns.key_id.data();
  const std::size_t first = block_.add(shape, &bulk_on_host_);
  if (Status status = block_.reserve(); !status.ok()) return status;
  if (Status status = strategy_->bind(stream_, &block_); !status.ok()) return status;
  bulk_ = block_.bind<BulkArguments<DeviceSpace>>(first, shape, &bulk_on_host_);
  bulk_.cells = strategy_->cells();
  bulk_.record_of = strategy_->record_of_key();
  table_.open(&bulk_);
  return {};
}

Status DeviceExecutor::launch() {
  Device& device = *opened_.device;
  const auto mark = [&](Mark at) { return device.record(marks_[at], stream_); };
  Status status = mark(kBegun);
  if (status.ok()) status = block_.send(stream_);
  if (status.ok()) status = mark(kSent);
  if (status.ok()) status = block_.zero(stream_);
  if (status.ok()) status = opened_.kernels->bulk(stream_, bulk_);
  if (status.ok()) status = strategy_->launch(stream_);
  if (status.ok()) status = opened_.kernels->scatter(stream_, bulk_);
  if (status.ok()) status = mark(kRan);
  if (status.ok()) status = block_.fetch(stream_);
  if (status.ok()) status = mark(kReturned);
  return status.ok() ? device.synchronize(stream_) : status;
}

void DeviceExecutor::measure(ExecutionReport* report) {
  report->sent_bytes = block_.sent_bytes();
  report->returned_bytes = block_.returned_bytes();
  double* const seconds[] = {&report->sent_seconds, &report->kernel_seconds, &report->returned_seconds};
  for (std::size_t part = 0; part < std::size(seconds); ++part) {
    const auto taken = opened_.device->seconds_between(marks_[part], marks_[part + 1]);
    if (taken.ok()) *seconds[part] = *taken;  // else the time is unknown, but the results are still good
  }
}

Status DeviceExecutor::unpack(BatchResults* results, ExecutionReport* report) {
  block_.unpack();
  strategy_->close(results, report);
  report->on_device = true;
  measure(report);
  // A kernel that gave up its batch writes no number of passes. The device got a zero there before the run.
  if (results->passes == 0) {
    return Status(StatusCode::internal,
                  std::string(report->strategy) + " gave up a batch on the device: no transaction made progress");
  }
  if (!is_plausible(*results)) return Status(StatusCode::internal, "the device returned invalid results");
  return {};
}

}  // namespace kilokv::engine
