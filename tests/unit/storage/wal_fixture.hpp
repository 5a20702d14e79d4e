// RocksDB's write-ahead logs as tests read and write them, apart from the product's own code. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::server::storage {

inline constexpr std::size_t kWalBlockBytes = 32768;
inline constexpr std::size_t kWalFragmentHeaderBytes = 7;

// One write of a log: what RocksDB encodes, and where it is in the file.
struct WalWrite {
  std::string bytes;
  std::size_t begin = 0, end = 0;
};

// All writes of an intact log.
std::vector<WalWrite> wal_writes(std::string_view file);

// An intact fragment. `type`: 1 full, 2 first, 3 middle, 4 last.
std::string wal_fragment(std::uint8_t type, std::string_view data);

// Appends a write as RocksDB does.
void append_wal_write(std::string* file, std::string_view write);

// Where a write of this size ends if it is appended to a log of `begin` bytes.
std::size_t end_of_wal_write(std::size_t begin, std::size_t bytes);

// The write without the tag at its beginning: as an older program writes it, or as a client would forge it.
std::string without_tag(const std::string& write);

}  // namespace kilokv::server::storage
