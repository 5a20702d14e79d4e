// The values of the state, sessions and metadata families as bytes, and the keys of sessions (docs/log-format.md). No
// RocksDB here. Each value begins with its format number. Decoders check everything. Errors: DATA_LOSS with the reason,
// FAILED_PRECONDITION for an unknown format. RocksDB's block checksums protect the bytes themselves.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/commit_log.hpp"

namespace kilokv::server::storage {

// The format of the whole directory. It is raised if an older program can no longer read the directory: format 2 has
// users, roles and tokens, or sessions in several pieces; format 3 was restored from a backup; format 4 has keys that
// expire. A directory that never had them keeps format 1.
inline constexpr std::uint32_t kDatabaseFormat = 4;
inline constexpr std::uint32_t kExpiryDatabaseFormat = 4;
inline constexpr std::uint32_t kRestoredDatabaseFormat = 3;
inline constexpr std::uint32_t kAccessDatabaseFormat = 2;
inline constexpr std::uint32_t kFirstDatabaseFormat = 1;

std::string encode_identity(const DatabaseIdentity& identity);
Result<DatabaseIdentity> decode_identity(std::string_view bytes);

// The incarnation that a restore has begun.
std::string encode_incarnation(const Incarnation& incarnation);
Result<Incarnation> decode_incarnation(std::string_view bytes);

// Appends the value to `out`.
void encode_state(const StoredRecord& record, std::string* out);
// Does not change `record->key`. `record->bytes` refers to `bytes`.
Status decode_state(std::string_view bytes, StoredRecord* record);

// The key of a session record: the generation of its checkpoint, the session's id, and the piece unless it is the
// first.
std::string encode_session_key(std::uint64_t generation, const StoredSession& session);
// Changes only the id and the piece of the session.
Status decode_session_key(std::string_view bytes, std::uint64_t* generation, StoredSession* session);

// The session's id and piece are in the key, and so not in the value.
std::string encode_session(const StoredSession& session);
Status decode_session(std::string_view bytes, StoredSession* session);

// The metadata record that makes a checkpoint count.
struct Checkpoint {
  RecoveredPosition covers;
  std::uint32_t record_crc = 0;     // of the log record of batch covers.batch; the next record carries it
  std::uint64_t generation = 0;     // of its session records
  std::uint64_t session_count = 0;  // number of session records
};
std::string encode_checkpoint(const Checkpoint& checkpoint);
Result<Checkpoint> decode_checkpoint(std::string_view bytes);

// The access table of a checkpoint, in core's encoding.
std::string encode_access(std::string_view table);
Result<std::string_view> decode_access(std::string_view bytes);

// A run of log records, the unit of trimming. Its first batch is its key.
struct LogSegment {
  BatchNumber first_batch = 0;
  BatchNumber last_batch = 0;
  TimeUs last_time_us = 0;
  std::uint64_t bytes = 0;
};
std::string encode_segment(const LogSegment& segment);
Status decode_segment(std::string_view bytes, LogSegment* segment);

}  // namespace kilokv::server::storage
