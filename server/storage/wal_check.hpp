// Tells a torn tail from a loss, before RocksDB opens the directory and cuts whatever it cannot read.
//
// The write-ahead log is synced write by write: when the first byte of a write is in the file, every write before it
// was synced and may have been acknowledged. So damage is harmless only in the very last write, which nobody was told
// of. RocksDB alone cannot be asked for this: one recovery mode silently drops everything after the damage, another
// refuses the torn blocks that a power failure leaves in the last write.
//
// Source: the format of RocksDB's db/log_format.h: blocks of 32 KiB of fragments, each with masked CRC-32C, length and
// type (full, first, middle, last).
#pragma once

#include <string>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// Reads all write-ahead logs in `directory`. DATA_LOSS names the file and the place when a write is damaged that is not
// the last.
Status check_write_ahead_logs(const std::string& directory);

}  // namespace kilokv::server::storage
