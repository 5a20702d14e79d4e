#include "engine/exec/run/host_arguments.hpp"

#include "engine/txn/view.hpp"

namespace kilokv::engine {

BatchShape shape_of(const ResolvedBatch& batch, const BatchRecords& records, const BatchThreads& threads,
                    std::uint32_t each) {
  const TransactionColumns& c = batch.columns;
  return {
      .transactions = c.size(),
      .guards = c.guard_kind.size(),
      .operations = c.op_kind.size(),
      .keys = c.key_id.size(),
      .values = c.value_end.size(),
      .records = records.size(),
      .host_records = records.are_numbered(),
      .positions = batch.order.size(),
      .equal_words = batch.equal.words().size(),
      .threads = threads,
      .undecided = position_room(static_cast<std::uint32_t>(c.size()), threads.number, threads.group_width, each),
  };
}

void set_batch_arguments(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                         BatchArguments<HostSpace>* arguments) {
  BatchArguments<HostSpace>& a = *arguments;
  a.batch = view_of(batch.header, batch.columns, batch.tombstone_floor);
  a.results = view_of(results);
  a.expires = batch.expires.data();
  a.order = batch.order.empty() ? nullptr : batch.order.data();
  a.record_of_key = records->record_of_key().data();
  a.value_word = batch.resolver.value_word();
  a.equal_begin = batch.equal.begin().data();
  a.equal_end = batch.equal.end().data();
  a.equal_word = batch.equal.words().data();
  a.cells = records->cells().data();
  a.absent_record = records->absent_record();
}

}  // namespace kilokv::engine
