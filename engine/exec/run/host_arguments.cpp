#include "engine/exec/run/host_arguments.hpp"

#include "engine/txn/view.hpp"

namespace kilokv::engine {

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
