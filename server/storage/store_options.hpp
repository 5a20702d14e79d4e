// The RocksDB options and the reason for each.
#pragma once

#include <rocksdb/db.h>

#include <vector>

#include "server/storage/rocksdb_log.hpp"

namespace kilokv::server::storage {

rocksdb::DBOptions database_options(const StorageOptions& options);

// One for each Family, in its order.
std::vector<rocksdb::ColumnFamilyDescriptor> family_options(const StorageOptions& options);

}  // namespace kilokv::server::storage
