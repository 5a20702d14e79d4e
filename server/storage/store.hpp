// The RocksDB database and its column families: how it is opened, with which options and why, and what its errors mean.
// Thread safety: any thread.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "server/storage/damage.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/options.hpp"
#include "server/storage/store_file_system.hpp"
#include "server/storage/wal_tag.hpp"

namespace kilokv::server::storage {

// `unused` is RocksDB's default family. RocksDB demands it; it stays empty.
enum class Family : std::size_t { unused, log, state, sessions, metadata };
inline constexpr std::array<const char*, 5> kFamilyNames = {"default", "log", "state", "sessions", "metadata"};

inline constexpr char kFormatKey[] = "format";
inline constexpr char kIdentityKey[] = "identity";
inline constexpr char kIncarnationKey[] = "incarnation";  // absent: the database was never restored
inline constexpr char kCheckpointKey[] = "checkpoint";
inline constexpr char kAccessKey[] = "access";        // the access table of the checkpoint; absent: it is empty
inline constexpr char kLogStartKey[] = "log-start";   // the first batch that trimming left
inline constexpr char kSegmentPrefix[] = "segment/";  // then the first batch, big-endian

class Store {
 public:
  // Errors: as open_rocksdb_log. `armed`: see fault_file_system.hpp.
  static Result<std::unique_ptr<Store>> open(const StorageOptions& options, const std::atomic<bool>* armed);
  // Whether the directory has a database that is whole as far as its files show. Opens none of them.
  static bool is_there(const std::string& directory);
  // Opens a database to check it. Nothing in its directory changes. `found` is told of each damage after which the
  // check can go on. Errors: DATA_LOSS: a damage after which it cannot; FAILED_PRECONDITION: there is no database, or
  // another process uses it.
  static Result<std::unique_ptr<Store>> open_to_check(const StorageOptions& options, const OnDamage& found);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // For everything but writes that go through the write-ahead log.
  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(Family family) const { return families_[static_cast<std::size_t>(family)]; }
  const std::string& directory() const { return directory_->path(); }
  // Whether this is a new database, whose creation has not ended. end_creation() is then to be called when all that it
  // needs is durable.
  bool created() const { return created_; }
  Status end_creation() const { return directory_->end_creation(); }
  // Removes the files that the recovery has made needless. Until then every file stays that has data, because a damaged
  // manifest may not name it. Call it before the first write, unless the database is new.
  Status end_recovery();
  // See DataDirectory.
  Status check_in_place() const { return directory_->check_in_place(); }

  // Empties `batch`, and begins it with the tag of the write-ahead log.
  void begin_write(rocksdb::WriteBatch* batch) const;
  // Writes `batch` through the write-ahead log. Requires: begin_write() began it.
  rocksdb::Status write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) const;

  LogMetrics& metrics() const { return *metrics_; }

  // A number that RocksDB knows, such as rocksdb.cur-size-all-mem-tables; 0 if it does not know it.
  std::uint64_t property(Family family, const char* name) const;

  // How many files of the family are at this level.
  std::uint64_t files_at_level(Family family, int level) const;

  // The memory of RocksDB's buffers, and of what it keeps of its files.
  std::uint64_t memory_bytes() const;

  // Turns a RocksDB status into ours: DATA_LOSS for corruption, else INTERNAL. `doing`: such as "appending batch 7".
  Status status_of(const rocksdb::Status& status, const std::string& doing) const;

 private:
  explicit Store(std::unique_ptr<DataDirectory> directory) : directory_(std::move(directory)) {}
  // FAILED_PRECONDITION: a database would have to be made, and must not (--create).
  Status check_creation(const StorageOptions& options) const;
  // FAILED_PRECONDITION: a new database would be made among files of others.
  Status check_place(const StorageOptions& options) const;
  Status open_database(const StorageOptions& options, const std::atomic<bool>* armed);
  void measure(const StorageOptions& options);
  Status begin_write_ahead_log();
  Status open_to_read(const StorageOptions& options, const OnDamage& found);
  void take(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles);
  void check_tables(const OnDamage& found) const;

  const std::unique_ptr<DataDirectory> directory_;  // released last
  bool created_ = false;
  WalTag tag_{};
  std::unique_ptr<LogMetrics> own_metrics_;  // if nobody else asks for them
  LogMetrics* metrics_ = nullptr;
  std::shared_ptr<StoreFileSystem> files_;
  std::unique_ptr<rocksdb::Env> environment_;  // with files_
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyNames.size()> families_{};
};

}  // namespace kilokv::server::storage
