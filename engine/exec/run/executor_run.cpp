#include "engine/exec/run/executor_run.hpp"

#include <algorithm>

namespace kilokv::engine {

Status ExecutorRun::run(const Batch& batch, Executor* executor) {
  batch.clock->enter(BatchStage::pack);
  if (executor->needs_records()) records_.gather(batch.columns, *batch.resolver, *batch.store);
  equal_.collect(batch.columns, *batch.resolver, batch.store->table());
  batch.clock->enter(BatchStage::run);
  Status status = executor->run({batch.header, batch.columns, batch.expires, batch.order, batch.tombstone_floor,
                                 *batch.store, *batch.resolver, equal_, *batch.clock},
                                &records_, batch.results, batch.report);
  if (!status.ok()) return status;
  batch.clock->enter(BatchStage::unpack);
  if (!executor->needs_records() && executor->digests().found != digest_) {
    return Status(StatusCode::internal, "the device's table differs from the host's table");
  }
  const bool in_order = batch.results->passes <= 1 && batch.order.empty() && !batch.report->any_order;
  batch.rank_order->sort(*batch.results, in_order);
  return write_back(batch, executor);
}

Status ExecutorRun::write_back(const Batch& batch, Executor* executor) {
  WriteBack back(batch.writes, batch.results, batch.before, batch.store);
  const std::uint32_t places = batch.rank_order->places(*batch.results);
  // The books are kept while what was written is in the cache. But a faulty device may have left words of byte values
  // that nobody may follow. So the books of a batch that writes such values are kept after the comparison.
  bool keeps_books = batch.columns.value_end.empty();
  if (keeps_books) batch.books->begin(batch.writes, *batch.store, batch.collected);
  for (std::uint32_t first = 0, last = 0; first < places && !back.is_wrong(); first = last) {
    last = first + std::min(batch.tile, places - first);
    batch.clock->enter(BatchStage::unpack);
    back.write(first, last);
    keeps_books = keeps_books && !back.has_bytes();
    if (keeps_books) batch.books->follow(first, last, batch.clock);
  }
  batch.clock->enter(BatchStage::unpack);
  if (Status status = compare(back, batch.store->table(), *executor); !status.ok()) {
    back.take_back();
    return status;
  }
  if (keeps_books) {
    batch.clock->enter(BatchStage::settle);
    batch.books->end(false, batch.store);
  } else {
    batch.books->keep(batch.writes, false, batch.clock, batch.store, batch.collected);
  }
  if (!back.has_new()) return {};
  // The device's table may lack records that had no version.
  batch.writes.for_each(batch.store->table(), [&](std::uint32_t, KeyId id, Cell before, Cell) {
    if (before.tag == 0) executor->changed(id);
  });
  return {};
}

Status ExecutorRun::compare(const WriteBack& back, const RecordTable& table, const Executor& executor) const {
  const bool agree = !back.is_wrong() &&
                     (executor.needs_records() ? records_.are_in(table) : executor.digests().change == back.change());
  if (agree) return {};
  return Status(StatusCode::internal, "the writes of the batch do not lead to the records that it left");
}

}  // namespace kilokv::engine
