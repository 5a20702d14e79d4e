#include "server/storage/store_file_system.hpp"

#include <string_view>

namespace kilokv::server::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

bool holds_data(std::string_view path) {
  return path.ends_with(".sst") || path.ends_with(".log") || path.find("/MANIFEST-") != std::string_view::npos;
}

}  // namespace

void StoreFileSystem::end_recovery() {
  const std::lock_guard lock(mutex_);
  recovers_ = false;
  // RocksDB looks for files that it does not need at each start. So a file that stays is removed then.
  for (const std::string& path : held_) FileSystemWrapper::DeleteFile(path, IOOptions(), nullptr);
  held_.clear();
}

// A damaged manifest may not name a file, and RocksDB then takes the file for a remainder. The recovery finds the loss
// later, and the file can still be saved by hand. If the recovery does not succeed, RocksDB finds the file again at the
// next start.
IOStatus StoreFileSystem::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* context) {
  const std::lock_guard lock(mutex_);
  if (!recovers_ || !holds_data(path)) return FileSystemWrapper::DeleteFile(path, options, context);
  held_.push_back(path);
  return IOStatus::OK();
}

}  // namespace kilokv::server::storage
