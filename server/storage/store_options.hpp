// The RocksDB options, with the reason for each. Thread safety: pure functions.
#pragma once

#include <rocksdb/db.h>

#include <vector>

#include "server/storage/options.hpp"

namespace kilokv::server::storage {

// A compaction of the state begins when so many files of checkpoints are there.
inline constexpr int kStateCompactionTrigger = 4;

rocksdb::DBOptions database_options(const StorageOptions& options);

// One descriptor for each Family, in its order.
std::vector<rocksdb::ColumnFamilyDescriptor> family_options(const StorageOptions& options);

}  // namespace kilokv::server::storage
