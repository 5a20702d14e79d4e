// The values of the state, sessions and metadata families as bytes (docs/log-format.md). No RocksDB.
// Each begins with its format number. Decoders check everything: DATA_LOSS with the reason, FAILED_PRECONDITION for an
// unknown format. RocksDB's block checksums guard the bytes themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/commit_log.hpp"

namespace kilokv::server::storage {

// Of the directory as a whole; raised when an older program could not read it.
inline constexpr std::uint32_t kDatabaseFormat = 1;

std::string encode_identity(const DatabaseIdentity& identity);
Result<DatabaseIdentity> decode_identity(std::string_view bytes);

// Appends to `out`.
void encode_state(const StoredRecord& record, std::string* out);
// `record->key` is left as it is; `record->bytes` refers to `bytes`.
Status decode_state(std::string_view bytes, StoredRecord* record);

// The session's id is its key.
std::string encode_session(const StoredSession& session);
Status decode_session(std::string_view bytes, StoredSession* session);

// What makes a checkpoint count.
struct Checkpoint {
  RecoveredPosition covers;
  std::uint32_t record_crc = 0;     // of the log record of batch covers.batch, which the next one carries
  std::uint64_t generation = 0;     // of its session records
  std::uint64_t session_count = 0;  // of them
};
std::string encode_checkpoint(const Checkpoint& checkpoint);
Result<Checkpoint> decode_checkpoint(std::string_view bytes);

// A run of log records, the unit of trimming; its first batch is its key.
struct LogSegment {
  BatchNumber first_batch = 0;
  BatchNumber last_batch = 0;
  TimeUs last_time_us = 0;
  std::uint64_t bytes = 0;
};
std::string encode_segment(const LogSegment& segment);
Status decode_segment(std::string_view bytes, LogSegment* segment);

}  // namespace kilokv::server::storage
