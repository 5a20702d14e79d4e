// RocksDB's file system with the storage.append fail points (core/fail_point.hpp) in its write-ahead log. Tests see
// with it how RocksDB itself handles a torn write or a failed sync. It is used only while fail points are set.
// Thread safety: any thread, as RocksDB demands of a file system.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>

namespace kilokv::server::storage {

// The points act once `armed` is true. `armed` must outlive the file system.
std::shared_ptr<rocksdb::FileSystem> make_fault_file_system(const std::atomic<bool>* armed);

}  // namespace kilokv::server::storage
