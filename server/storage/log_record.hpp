// Encodes one batch as bytes, and decodes it (docs/log-format.md). No RocksDB here.
//
// Invariants: the last four bytes are the CRC-32C of all bytes before them. Each record carries this CRC of the record
// before it. So a missing, doubled or misplaced record is found. Encoding allocates nothing once the buffer has grown.
//
// Thread safety: none; a RecordView is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/results.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/integer_column.hpp"

namespace kilokv::server::storage {

inline constexpr std::uint32_t kRecordMagic = 0x474F4C4B;  // "KLOG"
inline constexpr std::uint16_t kRecordFormat = 1;
inline constexpr std::size_t kRecordHeaderBytes = 96;
// Flags: the record has changes of the access table; it has an entry of a session that got a new holder; keys that it
// wrote expire; its writes delete keys that have expired.
inline constexpr std::uint16_t kHasAccess = 1, kHasAttach = 2, kHasExpiries = 4, kExpired = 8;

// Appends the record to `out`. Returns its CRC, which the next record carries as `previous_crc`.
// Requires: record.header.number >= 1; the columns are consistent.
std::uint32_t encode_record(const LogRecord& record, std::uint32_t previous_crc, std::string* out);

// A checked view of an encoded record. It is valid as long as its bytes are.
class RecordView {
 public:
  // Errors: DATA_LOSS, with the reason, for anything that encode_record cannot have written; FAILED_PRECONDITION for an
  // intact record with an unknown format.
  static Result<RecordView> parse(std::string_view bytes);

  const engine::BatchHeader& header() const { return header_; }
  Version next_version() const { return next_version_; }
  Version tombstone_floor() const { return tombstone_floor_; }
  std::uint32_t transactions() const { return transactions_; }
  std::uint32_t writes() const { return writes_; }
  Hash128 state_hash() const { return state_hash_; }
  std::uint32_t previous_crc() const { return previous_crc_; }
  std::uint32_t crc() const { return crc_; }
  bool has_expiries() const { return expiries_ > 0; }
  bool expired() const { return expired_; }

  // Visits batch_begin, the writes, the session entries, the access changes, batch_end, in this order.
  Status visit(RecoveryVisitor* visitor) const;

 private:
  Status parse_writes(Reader* reader, std::uint64_t key_bytes, std::uint64_t value_bytes);
  Status parse_sessions(Reader* reader, bool has_attach);
  Status parse_access(Reader* reader);
  Status parse_expiries(Reader* reader);
  Status visit_writes(RecoveryVisitor* visitor) const;
  Status visit_sessions(RecoveryVisitor* visitor) const;
  Status visit_access(RecoveryVisitor* visitor) const;

  engine::BatchHeader header_;
  Version next_version_ = 0;
  Version tombstone_floor_ = 0;
  Hash128 state_hash_;
  std::uint32_t transactions_ = 0;
  std::uint32_t previous_crc_ = 0;
  std::uint32_t crc_ = 0;
  std::uint32_t writes_ = 0;
  std::uint32_t sessions_ = 0;
  std::uint32_t access_changes_ = 0;
  std::uint32_t expiries_ = 0;
  bool expired_ = false;
  IntegerColumn type_, rank_step_, word_, key_bytes_, value_bytes_, expiry_step_, expires_us_;
  std::string_view keys_, values_, session_entries_, access_;
};

}  // namespace kilokv::server::storage
