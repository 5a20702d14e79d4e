// Tells a torn tail from a data loss, before RocksDB opens the directory and cuts what it cannot read.
//
// The write-ahead log is synced write by write. When the first byte of a write is in the file, every write before it
// was synced and may have been acknowledged. So damage is harmless only in the very last write, which was never
// acknowledged. RocksDB alone cannot decide this: one recovery mode silently drops everything after the damage, and
// another refuses the torn blocks that a power failure leaves in the last write.
//
// The last write has bytes of clients in it, and these may look like a later write. So after damage only a write counts
// that begins with the tag of the directory (wal_tag.hpp). Without a known tag, every write counts. The same holds in a
// file whose first write has no tag, because an older program wrote that file.
//
// Source: the format in RocksDB's db/log_format.h: blocks of 32 KiB of fragments, each with masked CRC-32C, length and
// type (full, first, middle, last).
//
// Thread safety: none; call these functions at start-up.
#pragma once

#include <string>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// Reads all write-ahead logs in `directory`, before RocksDB opens it. Errors: DATA_LOSS, which names the file and the
// place, if a write other than the last one is damaged.
Status check_write_ahead_logs(const std::string& directory);

// Removes the write-ahead logs that have no byte, before RocksDB opens the directory. Each start makes a new one.
// Without this, starts that are killed before they have opened the directory would leave one file each.
Status remove_empty_write_ahead_logs(const std::string& directory);

// Removes the write-ahead logs that are older than `current`, the file's name, after RocksDB has opened the directory
// and moved what they hold into table files. RocksDB itself keeps a log in which it could read nothing. If that log has
// a torn write, RocksDB would not read the later logs at the next start.
Status remove_older_write_ahead_logs(const std::string& directory, const std::string& current);

}  // namespace kilokv::server::storage
