// Writes a checkpoint. State and session records bypass the write-ahead log; flushing their families makes them
// durable. Then one synced metadata record makes them count. Until that record is durable, the older checkpoint is
// complete: its sessions have another generation, and its state records are only replaced by newer ones, which replay
// skips.
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

  // Continues after recovery. `generation`: the highest of any session record, including those of an unfinished
  // checkpoint.
  // `format`: of the directory.
  void restore(const Checkpoint& current, std::uint64_t generation, std::uint32_t format);

  Status begin();
  Status put(std::span<const StoredRecord> records);
  Status drop(std::span<const std::string_view> keys);
  Status put(const StoredSession& session);
  Status end(const RecoveredPosition& covers, std::string_view access_table);

  // The checkpoint that counts.
  const Checkpoint& current() const { return current_; }

 private:
  Status write(Family family);
  Status raise_format(std::uint32_t least);
  Result<std::uint32_t> record_crc(BatchNumber batch) const;

  Store* const store_;
  Checkpoint current_;
  std::uint64_t generation_ = 0;  // of the checkpoint that is being written ...
  std::uint64_t sessions_ = 0;    // ... and how many session records it has so far
  std::uint32_t format_ = 1;      // of the directory
  std::string value_;
  rocksdb::WriteBatch batch_;
};

}  // namespace kilokv::server::storage
