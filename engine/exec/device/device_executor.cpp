#include "engine/exec/device/device_executor.hpp"

#include <cstring>
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

// The offsets of a batch's columns in the device's block. The staging memory has the same offsets, up to
// `returned_end`. First come the columns that are sent to the device. Then come those that are all zero at the start:
// first the ones that come back, then the others. Scratch comes last.
struct DeviceExecutor::BlockOffsets {
  BlockOffsets(const ResolvedBatch& batch, const BatchRecords& records, DeviceStrategy* strategy) {
    const TransactionColumns& c = batch.columns;
    n = c.size();
    d = records.size();
    const std::size_t m = c.op_kind.size();
    strategy->begin(batch, records);
    shape = {n, c.guard_kind.size(), m, c.key_id.size(), d, strategy->threads(static_cast<std::uint32_t>(n))};
    BlockLayout layout;
    guard_end = layout.add<std::uint32_t>(n);
    then_end = layout.add<std::uint32_t>(n);
    else_end = layout.add<std::uint32_t>(n);
    order = layout.add<std::uint32_t>(batch.order.size());
    expires = layout.add<std::uint8_t>(n);
    guard_kind = layout.add<std::uint8_t>(c.guard_kind.size());
    guard_on_false = layout.add<std::uint8_t>(c.guard_kind.size());
    guard_key = layout.add<std::uint32_t>(c.guard_kind.size());
    guard_other = layout.add<std::uint32_t>(c.guard_kind.size());
    guard_operand = layout.add<std::int64_t>(c.guard_kind.size());
    op_kind = layout.add<std::uint8_t>(m);
    op_operand = layout.add<std::uint8_t>(m);
    op_key = layout.add<std::uint32_t>(m);
    op_value = layout.add<std::int64_t>(m);
    record_of_key = layout.add<std::uint32_t>(c.key_id.size());
    value_word = layout.add<std::uint64_t>(c.value_end.size());
    equal_begin = layout.add<std::uint32_t>(c.value_end.size());
    equal_end = layout.add<std::uint32_t>(c.value_end.size());
    equal_word = layout.add<std::uint64_t>(batch.equal.words().size());
    ids = layout.add<KeyId>(d);
    actions = layout.add<std::uint8_t>(d);
    strategy->add_columns(batch, shape, BlockSection::sent, &layout);
    sent_end = layout.bytes();
    outcome = layout.add<std::uint8_t>(n);
    failed_in = layout.add<std::uint8_t>(n);
    failed_index = layout.add<std::uint32_t>(n);
    rank = layout.add<std::uint32_t>(n);
    wrote = layout.add<std::uint8_t>(n);
    guard_cell = layout.add<Cell>(n);
    op_cell = layout.add<Cell>(m);
    op_flags = layout.add<std::uint8_t>(m);
    cells = layout.add<std::uint64_t>(2 * d);
    bulk_words = layout.add<std::uint64_t>(kBulkWords);
    strategy->add_columns(batch, shape, BlockSection::returned, &layout);
    returned_end = layout.bytes();
    strategy->add_columns(batch, shape, BlockSection::zeroed, &layout);
    zeroed_end = layout.bytes();
    strategy->add_columns(batch, shape, BlockSection::scratch, &layout);
    slot_of = layout.add<std::uint32_t>(d);
    pending = layout.add<std::uint8_t>(d);
    end = layout.bytes();
  }

  BatchShape shape;
  std::size_t n, d;
  std::size_t guard_end, then_end, else_end, order, expires;
  std::size_t guard_kind, guard_on_false, guard_key, guard_other, guard_operand;
  std::size_t op_kind, op_operand, op_key, op_value;
  std::size_t record_of_key, value_word, equal_begin, equal_end, equal_word, ids, actions, sent_end;
  std::size_t outcome, failed_in, failed_index, rank, wrote, guard_cell, op_cell, op_flags;
  std::size_t cells, bulk_words, returned_end, zeroed_end;
  std::size_t slot_of, pending, end;
};

DeviceExecutor::DeviceExecutor(OpenedDevice opened, std::vector<std::string> strategies, const SettingTexts& settings,
                               FirstEpochs first)
    : opened_(std::move(opened)),
      names_(std::move(strategies)),
      table_(opened_.device.get(), opened_.kernels.get(), first.table),
      staging_(opened_.device.get()),
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
  const BlockOffsets offsets(batch, *records, strategy_);
  Status status = prepare(batch.store);
  if (status.ok()) status = reserve(offsets);
  if (!status.ok()) return status;
  pack(offsets, batch, *records);
  batch.clock.enter(BatchStage::run);
  status = launch(offsets, batch, *records);
  batch.clock.enter(BatchStage::unpack);
  return status.ok() ? unpack(offsets, batch, records, results, report) : status;
}

Status DeviceExecutor::validate(const RecordStore& store, const ReadSet& set, ValidatorLanes lanes,
                                ValidatorResult* result) {
  const Status status = prepare(store);
  return status.ok() ? validator_.run(stream_, table_, set, lanes, result) : status;
}

Status DeviceExecutor::reserve(const BlockOffsets& offsets) {
  Status status = staging_.reserve_growing(offsets.returned_end);
  if (status.ok()) status = block_.reserve_growing(offsets.end);
  return status.ok() ? strategy_->reserve(stream_, offsets.shape) : status;
}

void DeviceExecutor::pack(const BlockOffsets& offsets, const ResolvedBatch& batch, const BatchRecords& records) {
  std::byte* const to = staging_.data();
  const auto put = [to](std::size_t offset, const auto& column) {
    if (!column.empty()) std::memcpy(to + offset, column.data(), column.size() * sizeof(column[0]));
  };
  const TransactionColumns& c = batch.columns;
  put(offsets.guard_end, c.guard_end);
  put(offsets.then_end, c.then_end);
  put(offsets.else_end, c.else_end);
  put(offsets.order, batch.order);
  put(offsets.expires, batch.expires);
  put(offsets.guard_kind, c.guard_kind);
  put(offsets.guard_on_false, c.guard_on_false);
  put(offsets.guard_key, c.guard_key);
  put(offsets.guard_other, c.guard_other);
  put(offsets.guard_operand, c.guard_operand);
  put(offsets.op_kind, c.op_kind);
  put(offsets.op_operand, c.op_operand);
  put(offsets.op_key, c.op_key);
  put(offsets.op_value, c.op_value);
  put(offsets.record_of_key, records.record_of_key());
  put(offsets.equal_begin, batch.equal.begin());
  put(offsets.equal_end, batch.equal.end());
  put(offsets.equal_word, batch.equal.words());
  if (!c.value_end.empty()) {
    std::memcpy(to + offsets.value_word, batch.resolver.value_word(), c.value_end.size() * sizeof(std::uint64_t));
  }
  strategy_->pack(to);
  const RecordTable& table = batch.store.table();
  auto* const ids = reinterpret_cast<KeyId*>(to + offsets.ids);
  auto* const actions = reinterpret_cast<std::uint8_t*>(to + offsets.actions);
  digest_ = 0;
  for (std::uint32_t i = 0; i < offsets.d; ++i) {
    const Slot& slot = table[records.slots()[i]];
    // The device's table does not have a record without a version. If the batch writes the record, it is sent to that
    // table before the next batch.
    const bool is_there = slot.cell.tag != 0;
    ids[i] = slot.id;
    actions[i] = static_cast<std::uint8_t>(is_there ? BulkAction::find : BulkAction::none);
    digest_ += cell_digest(i, slot.cell.word, slot.cell.tag);
  }
}

BulkArguments<DeviceSpace> DeviceExecutor::bulk_arguments(const BlockOffsets& offsets) const {
  BulkArguments<DeviceSpace> a;
  table_.open(&a);
  a.size = static_cast<std::uint32_t>(offsets.d);
  a.ids = block_.at<const KeyId>(offsets.ids);
  a.actions = block_.at<const std::uint8_t>(offsets.actions);
  a.slot_of = block_.at<std::uint32_t>(offsets.slot_of);
  a.pending = block_.at<std::uint8_t>(offsets.pending);
  a.cells = block_.at<std::uint64_t>(offsets.cells);
  a.words = block_.at<std::uint64_t>(offsets.bulk_words);
  return a;
}

BatchArguments<DeviceSpace> DeviceExecutor::batch_arguments(const BlockOffsets& offsets, const ResolvedBatch& batch,
                                                            const BatchRecords& records) const {
  BatchArguments<DeviceSpace> a;
  a.batch.size = static_cast<std::uint32_t>(offsets.n);
  a.batch.first_version = batch.header.first_version;
  a.batch.time_us = batch.header.time_us;
  a.batch.tombstone_floor = batch.tombstone_floor;
  a.batch.guard_end = block_.at<const std::uint32_t>(offsets.guard_end);
  a.batch.then_end = block_.at<const std::uint32_t>(offsets.then_end);
  a.batch.else_end = block_.at<const std::uint32_t>(offsets.else_end);
  a.batch.guard_kind = block_.at<const std::uint8_t>(offsets.guard_kind);
  a.batch.guard_on_false = block_.at<const std::uint8_t>(offsets.guard_on_false);
  a.batch.guard_key = block_.at<const std::uint32_t>(offsets.guard_key);
  a.batch.guard_other = block_.at<const std::uint32_t>(offsets.guard_other);
  a.batch.guard_operand = block_.at<const std::int64_t>(offsets.guard_operand);
  a.batch.op_kind = block_.at<const std::uint8_t>(offsets.op_kind);
  a.batch.op_operand = block_.at<const std::uint8_t>(offsets.op_operand);
  a.batch.op_key = block_.at<const std::uint32_t>(offsets.op_key);
  a.batch.op_value = block_.at<const std::int64_t>(offsets.op_value);
  a.results.outcome = block_.at<std::uint8_t>(offsets.outcome);
  a.results.failed_in = block_.at<std::uint8_t>(offsets.failed_in);
  a.results.failed_index = block_.at<std::uint32_t>(offsets.failed_index);
  a.results.rank = block_.at<std::uint32_t>(offsets.rank);
  a.results.wrote = block_.at<std::uint8_t>(offsets.wrote);
  a.results.guard_cell = block_.at<Cell>(offsets.guard_cell);
  a.results.op_cell = block_.at<Cell>(offsets.op_cell);
  a.results.op_flags = block_.at<std::uint8_t>(offsets.op_flags);
  a.expires = block_.at<const std::uint8_t>(offsets.expires);
  if (!batch.order.empty()) a.order = block_.at<const std::uint32_t>(offsets.order);
  a.record_of_key = block_.at<const std::uint32_t>(offsets.record_of_key);
  a.value_word = block_.at<const std::uint64_t>(offsets.value_word);
  a.equal_begin = block_.at<const std::uint32_t>(offsets.equal_begin);
  a.equal_end = block_.at<const std::uint32_t>(offsets.equal_end);
  a.equal_word = block_.at<const std::uint64_t>(offsets.equal_word);
  a.cells = block_.at<std::uint64_t>(offsets.cells);
  a.absent_record = records.absent_record();
  return a;
}

Status DeviceExecutor::launch(const BlockOffsets& offsets, const ResolvedBatch& batch, const BatchRecords& records) {
  Device& device = *opened_.device;
  const DeviceAddress block = block_.address();
  const ScatterArguments<DeviceSpace> scatter{
      .slots = bulk_arguments(offsets).slots,
      .size = static_cast<std::uint32_t>(offsets.d),
      .slot_of = block_.at<const std::uint32_t>(offsets.slot_of),
      .cells = block_.at<const std::uint64_t>(offsets.cells),
  };
  const auto mark = [&](Mark at) { return device.record(marks_[at], stream_); };
  Status status = mark(kBegun);
  if (status.ok()) status = device.copy_to_device(stream_, block, staging_.data(), offsets.sent_end);
  if (status.ok()) status = mark(kSent);
  if (status.ok()) status = device.fill(stream_, block + offsets.sent_end, 0, offsets.zeroed_end - offsets.sent_end);
  if (status.ok()) status = opened_.kernels->bulk(stream_, bulk_arguments(offsets));
  if (status.ok()) status = strategy_->launch(stream_, block_, batch_arguments(offsets, batch, records), offsets.shape);
  if (status.ok()) status = opened_.kernels->scatter(stream_, scatter);
  if (status.ok()) status = mark(kRan);
  if (status.ok()) {
    status = device.copy_to_host(stream_, staging_.data() + offsets.sent_end, block + offsets.sent_end,
                                 offsets.returned_end - offsets.sent_end);
  }
  if (status.ok()) status = mark(kReturned);
  return status.ok() ? device.synchronize(stream_) : status;
}

void DeviceExecutor::measure(const BlockOffsets& offsets, ExecutionReport* report) {
  report->sent_bytes = offsets.sent_end;
  report->returned_bytes = offsets.returned_end - offsets.sent_end;
  double* const seconds[] = {&report->sent_seconds, &report->kernel_seconds, &report->returned_seconds};
  for (std::size_t part = 0; part < std::size(seconds); ++part) {
    const auto taken = opened_.device->seconds_between(marks_[part], marks_[part + 1]);
    if (taken.ok()) *seconds[part] = *taken;  // else the time is unknown, but the results are still good
  }
}

Status DeviceExecutor::unpack(const BlockOffsets& offsets, const ResolvedBatch& batch, BatchRecords* records,
                              BatchResults* results, ExecutionReport* report) {
  const std::byte* const from = staging_.data();
  const auto get = [from](std::size_t offset, auto* column) {
    if (!column->empty()) std::memcpy(column->data(), from + offset, column->size() * sizeof((*column)[0]));
  };
  get(offsets.outcome, &results->outcome);
  get(offsets.failed_in, &results->failed_in);
  get(offsets.failed_index, &results->failed_index);
  get(offsets.rank, &results->rank);
  get(offsets.wrote, &results->wrote);
  get(offsets.guard_cell, &results->guard_cell);
  get(offsets.op_cell, &results->op_cell);
  get(offsets.op_flags, &results->op_flags);
  get(offsets.cells, &records->cells());
  const auto* const bulk_words = reinterpret_cast<const std::uint64_t*>(from + offsets.bulk_words);
  strategy_->report(batch.header, offsets.shape, from, results, report);
  report->on_device = true;
  measure(offsets, report);
  if (bulk_words[kBulkDigest] != digest_) {
    return Status(StatusCode::internal, "the device's table differs from the host's table");
  }
  // A kernel that gave up its batch writes no number of passes. The device got a zero there before the run.
  if (results->passes == 0) {
    return Status(StatusCode::internal,
                  std::string(report->strategy) + " gave up a batch on the device: no transaction made progress");
  }
  if (!is_plausible(*results)) return Status(StatusCode::internal, "the device returned invalid results");
  const RecordTable& table = batch.store.table();
  for (std::size_t i = 0; i < offsets.d; ++i) {
    const Slot& slot = table[records->slots()[i]];
    if (slot.cell.tag == 0 && records->cells()[2 * i + 1] != 0) table_.changed(slot.id);
  }
  return {};
}

}  // namespace kilokv::engine
