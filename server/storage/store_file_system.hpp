// The file system that RocksDB sees. It removes no data before the recovery has succeeded,
// it refuses a table file with a damaged footer, it notes which file each thread reads (last_file_read.hpp), and it
// measures the syncs of the write-ahead log.
// Thread safety: any thread, as RocksDB demands of a file system.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/core/metrics.hpp"

namespace kilokv::server::storage {

class StoreFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  // `metrics` outlives it.
  StoreFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target, LogMetrics* metrics)
      : FileSystemWrapper(target), metrics_(metrics) {}

  const char* Name() const override { return "StoreFileSystem"; }

  // Removes the files that RocksDB wanted to remove until now. From now on RocksDB removes files at once.
  void end_recovery();

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;

 private:
  LogMetrics* const metrics_;
  std::mutex mutex_;
  bool recovers_ = true;
  std::vector<std::string> held_;  // files to remove
};

}  // namespace kilokv::server::storage
