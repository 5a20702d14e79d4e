// Reads records of an open store's log, one at a time. RocksDB shows a record only when it is synced.
//
// Thread safety: as LogReader says.
#pragma once

#include <rocksdb/slice.h>

#include <cstdint>
#include <deque>
#include <unordered_map>

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
  const LoggedBatch& batch() const override { return at_->batch; }
  void visit(const std::function<bool(const StoredRecord&)>& visit) const override;
  void release() override;

 private:
  struct Record {
    rocksdb::PinnableSlice bytes;
    RecordView view;  // of the bytes
    LoggedBatch batch;
  };

  Status load(BatchNumber batch, bool* found);
  void make_room(std::uint64_t bytes);

  const Store* const store_;
  const LogHistory* const history_;
  // The records that were read last, so many that they take at most kAtHandBytes, or one that takes more.
  std::unordered_map<BatchNumber, Record> at_hand_;
  std::deque<BatchNumber> order_;  // of the reading
  std::uint64_t at_hand_bytes_ = 0;
  const Record* at_ = nullptr;  // null: nothing was read
};

}  // namespace kilokv::server::storage
