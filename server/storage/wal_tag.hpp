// The tag of the write-ahead log: 16 random bytes with which every write begins that this program makes there. A client
// cannot know it. So bytes of a client that look like a write are told from a real one (wal_check.hpp).
//
// The tag is in the file TAG of the data directory. Each start draws a new one. A copy of the directory, which a client
// may have, so does not tell the tags of later starts.
//
// Thread safety: none; call these functions at start-up.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

inline constexpr char kWalTagFileName[] = "TAG";

using WalTag = std::array<char, 16>;

// RocksDB begins each write with its sequence number (8 bytes) and the count of its entries (4 bytes).
inline constexpr std::size_t kWriteHeaderBytes = 12;
// The tag is the first entry, of the kind that changes nothing: the kind, the length, the bytes.
inline constexpr std::string_view kTagEntryHead = "\x03\x10";
inline constexpr std::size_t kTaggedBytes = kWriteHeaderBytes + kTagEntryHead.size() + WalTag().size();

// Whether a write, as RocksDB encodes it, begins with the tag. Its first kTaggedBytes are enough.
bool begins_with(std::string_view write, const WalTag& tag);

// The tag in the file, or nothing if the file is missing, cannot be read, or is damaged.
std::optional<WalTag> read_wal_tag(const std::string& directory);

// Draws a new tag. Makes it durable, and all that was changed in the directory. Requires: no write of an older tag is
// needed any more.
Result<WalTag> renew_wal_tag(const std::string& directory);

}  // namespace kilokv::server::storage
