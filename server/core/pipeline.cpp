#include "server/core/pipeline.hpp"

namespace kilokv::server {

void Batch::clear() {
  header = {};
  columns.clear();
  last_try.clear();
  writes.clear();
  parts.clear();
  session_entries.clear();
  encoded_results.clear();
  when_durable.clear();
  after = {};
}

LiveSlice Batch::slice_of(const BatchPart& part, const engine::Engine& engine) const {
  const ExecutedBatch executed{&columns, &results, &engine, header};
  if (!part.whole) return LiveSlice(executed, part.items);
  return LiveSlice(executed, part.begin, part.end, part.run->index_of(part.first));
}

}  // namespace kilokv::server
