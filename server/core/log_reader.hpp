// Reads batches of the log that are durable, for those who watch (core/reads/watch_cursor.hpp).
//
// Thread safety: one thread at a time. Any thread may make one while the log is open.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::server {

struct StoredRecord;  // core/commit_log.hpp

struct LoggedBatch {
  engine::BatchHeader header;
  Version next_version = 1;
  bool expired = false;     // its writes delete keys that had expired
  std::uint64_t bytes = 0;  // of its record
};

class LogReader {
 public:
  virtual ~LogReader() = default;

  // The first batch that is kept; 0: none is.
  virtual BatchNumber first_batch() const = 0;
  // Reads a batch. False: it is not kept any more. Errors: those of the log. Requires: the batch is durable.
  virtual Result<bool> read(BatchNumber batch) = 0;
  // The batch that read() has read. A batch that was read a short time ago is at hand, so that several watches, and the
  // parts of a large batch, read it once.
  virtual const LoggedBatch& batch() const = 0;
  // Visits its writes in their order, until `visit` returns false. The views are valid during the call.
  virtual void visit(const std::function<bool(const StoredRecord&)>& visit) const = 0;
  // Lets go of all batches that are at hand, and of their memory.
  virtual void release() = 0;
};

}  // namespace kilokv::server
