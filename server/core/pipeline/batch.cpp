#include "server/core/pipeline/batch.hpp"

namespace kilokv::server {

void Batch::clear() {
  memory_bytes = unanswered_parts = reserved_log_bytes = 0;
  expired = false;
  header = {};
  times = {};
  columns.clear();
  expires.clear();
  writes.clear();
  parts.clear();
  session_entries.clear();
  access_changes.clear();
  encoded_results.clear();
  when_durable.clear();
  after = {};
}

// Counts the columns that grow with what clients send and read. The other columns have one element for each element of
// these.
std::uint64_t capacity_bytes(const Batch& batch) {
  const engine::BatchResults& results = batch.results;
  const engine::WriteColumns& writes = batch.writes;
  return batch.columns.capacity_bytes() + results.op_cell.capacity() * sizeof(Cell) +
         results.pair_cell.capacity() * sizeof(Cell) + results.pair_key_bytes.capacity() +
         writes.word.capacity() * sizeof(std::int64_t) + writes.key_bytes.capacity() + writes.value_bytes.capacity() +
         batch.encoded_results.capacity();
}

std::uint64_t content_bytes(const Batch& batch) {
  const engine::BatchResults& results = batch.results;
  const engine::WriteColumns& writes = batch.writes;
  return batch.columns.memory_bytes() + (results.op_cell.size() + results.pair_cell.size()) * sizeof(Cell) +
         results.pair_key_bytes.size() + writes.word.size() * sizeof(std::int64_t) + writes.key_bytes.size() +
         writes.value_bytes.size() + batch.encoded_results.size();
}

LiveSlice Batch::slice_of(const BatchPart& part, const engine::Engine& engine) const {
  const ExecutedBatch executed{&columns, &results, &engine, header};
  if (!part.whole) return LiveSlice(executed, part.items);
  return LiveSlice(executed, part.begin, part.end, part.request->index_of(part.first));
}

}  // namespace kilokv::server
