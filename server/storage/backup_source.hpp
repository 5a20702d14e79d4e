// A backup of an open store: a snapshot of RocksDB, read frame by frame. No iterator stays open between two frames: it
// would keep buffers in memory that were written to files long ago.
//
// Thread safety: as BackupSource says.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/iterator.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/core/backup.hpp"
#include "server/storage/backup_format.hpp"
#include "server/storage/log_pin.hpp"
#include "server/storage/store.hpp"

namespace kilokv::server::storage {

class StoreBackup final : public BackupSource {
 public:
  // Takes the snapshot. Both outlive it.
  static Result<std::unique_ptr<BackupSource>> open(const Store* store, LogPins* pins);
  ~StoreBackup() override;
  StoreBackup(const StoreBackup&) = delete;
  StoreBackup& operator=(const StoreBackup&) = delete;

  const BackupId& id() const override { return header_.id; }
  BatchNumber boundary() const override { return header_.boundary.batch; }
  std::uint64_t estimated_bytes() const override { return estimated_bytes_; }
  bool is_lost() const override { return pin_->lost.load(); }
  Status seek(const BackupPoint& point) override;
  Result<bool> next(std::string* frame) override;

 private:
  StoreBackup(const Store* store, std::shared_ptr<LogPin> pin);
  Status read_header();
  Status read_identity();
  Status read_boundary();
  Result<std::string> metadata(const char* key) const;
  std::unique_ptr<rocksdb::Iterator> scan(Family family) const;
  void start(FrameKind kind);
  Status check_pin() const;
  Status fill_state();
  Status fill_sessions();
  Status fill_log();
  Status failed(const rocksdb::Status& status, const char* doing) const;
  Status fill(Family family, const std::string& from,
              const std::function<bool(std::string_view, std::string_view)>& take);
  std::string session_prefix() const;

  const Store* const store_;
  const std::shared_ptr<LogPin> pin_;
  const rocksdb::Snapshot* const snapshot_;
  BackupHeader header_;
  std::uint64_t estimated_bytes_ = 0;
  // What comes next: a frame of this kind, with keys after this one.
  FrameKind kind_ = FrameKind::header;
  std::string after_;
  std::uint64_t index_ = 0;
  std::uint32_t crc_ = 0;
  bool ended_ = false;
  std::string payload_;
};

}  // namespace kilokv::server::storage
