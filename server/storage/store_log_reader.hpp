// Reads records of an open store's log, one at a time. RocksDB shows a record only when it is synced.
//
// Thread safety: as LogReader says.
#pragma once

#include <rocksdb/slice.h>

#include <optional>

#include "server/core/log_reader.hpp"
#include "server/storage/log_history.hpp"
#include "server/storage/log_record.hpp"
#include "server/storage/store.hpp"

namespace kilokv::server::storage {

class StoreLogReader final : public LogReader {
 public:
  // Both outlive it.
  StoreLogReader(const Store* store, const LogHistory* history) : store_(store), history_(history) {}

  BatchNumber first_batch() const override { return history_->first_batch(); }
  Result<bool> read(BatchNumber batch) override;
  const LoggedBatch& batch() const override { return batch_; }
  void visit(const std::function<bool(const StoredRecord&)>& visit) const override;

 private:
  const Store* const store_;
  const LogHistory* const history_;
  rocksdb::PinnableSlice bytes_;
  std::optional<RecordView> record_;  // of bytes_
  LoggedBatch batch_;
};

}  // namespace kilokv::server::storage
