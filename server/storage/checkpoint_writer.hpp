// Writes a checkpoint: state and session records without the write-ahead log, made durable by flushing their families,
// and then one synced metadata record that makes them count. Until that record is durable the older checkpoint is
// whole: its sessions are another generation, and its state records are only replaced by newer ones, which replay
// passes over.
//
// Thread safety: one thread, the checkpoint worker.
#pragma once

#include <rocksdb/write_batch.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/storage/store.hpp"
#include "server/storage/stored_values.hpp"

namespace kilokv::server::storage {

class CheckpointWriter {
 public:
  explicit CheckpointWriter(Store* store) : store_(store) {}

  // `generation`: the highest that any session record has, of an unfinished checkpoint too.
  void restore(const Checkpoint& current, std::uint64_t generation);

  Status begin();
  Status put(std::span<const StoredRecord> records);
  Status drop(std::span<const std::string_view> keys);
  Status put(const StoredSession& session);
  Status end(const RecoveredPosition& covers);

  // The one that counts.
  const Checkpoint& current() const { return current_; }

 private:
  Status write(Family family);
  Result<std::uint32_t> record_crc(BatchNumber batch) const;

  Store* const store_;
  Checkpoint current_;
  std::uint64_t generation_ = 0;  // of the one being written ...
  std::uint64_t sessions_ = 0;    // ... and how many it has so far
  std::string value_;
  rocksdb::WriteBatch batch_;
};

}  // namespace kilokv::server::storage
