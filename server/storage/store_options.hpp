// The RocksDB options, with the reason for each. Thread safety: pure functions.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <cstdint>
#include <vector>

#include "server/storage/options.hpp"

namespace kilokv::server::storage {

// The number of checkpoint files at which a compaction of the state begins.
inline constexpr int kStateCompactionTrigger = 4;
// The files of the next level that a file of the state overlaps, with itself, at most.
inline constexpr std::uint64_t kOverlapMaxFiles = 12;

// The format and the checksums of the table files.
inline constexpr std::uint32_t kTableVersion = 5;
inline constexpr rocksdb::ChecksumType kTableChecksum = rocksdb::kXXH3;

rocksdb::DBOptions database_options(const StorageOptions& options);

// One descriptor for each Family, in its order.
std::vector<rocksdb::ColumnFamilyDescriptor> family_options(const StorageOptions& options);

}  // namespace kilokv::server::storage
