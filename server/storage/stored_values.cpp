#include "server/storage/stored_values.hpp"

#include "engine/base/check.hpp"
#include "server/storage/bytes.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::uint8_t kValueFormat = 1;          // of each kind of value in this file, but
constexpr std::uint8_t kExpiringStateFormat = 2;  // of a state record whose key expires
constexpr std::uint8_t kUserSessionFormat = 2;    // of a session that a user has opened
constexpr std::uint8_t kHeldSessionFormat = 3;    // of a session that a client has attached to, a user's or nobody's
// The format of a session of an earlier incarnation. The record of the session, in one of the other formats, follows.
constexpr std::uint8_t kFrozenSessionFormat = 4;

Status malformed(const char* what) { return {StatusCode::data_loss, std::string(what) + " is malformed or cut short"}; }

Status check_format(Reader* reader, const char* what, const char* known = "format 1") {
  const auto format = reader->get<std::uint8_t>();
  if (!reader->good()) return malformed(what);
  if (format == kValueFormat) return {};
  return {StatusCode::failed_precondition, ErrorReason::failed,
          std::string(what) + " has format " + std::to_string(format) + "; this version reads " + known};
}

void put_sized(std::string* out, std::string_view bytes) {
  KILOKV_CHECK(bytes.size() <= UINT32_MAX);
  put(out, static_cast<std::uint32_t>(bytes.size()));
  out->append(bytes);
}

}  // namespace

std::string encode_identity(const DatabaseIdentity& identity) {
  std::string out;
  put(&out, kValueFormat);
  put(&out, identity.id);
  put(&out, identity.key_secret.low);
  put(&out, identity.key_secret.high);
  return out;
}

Result<DatabaseIdentity> decode_identity(std::string_view bytes) {
  Reader reader(bytes);
  if (Status status = check_format(&reader, "database identity"); !status.ok()) return status;
  DatabaseIdentity identity;
  identity.id = reader.get<decltype(identity.id)>();
  identity.key_secret.low = reader.get<std::uint64_t>();
  identity.key_secret.high = reader.get<std::uint64_t>();
  if (!reader.finished()) return malformed("database identity");
  return identity;
}

std::string encode_incarnation(const Incarnation& incarnation) {
  std::string out;
  put(&out, kValueFormat);
  put(&out, incarnation.id);
  put(&out, incarnation.after_batch);
  put(&out, incarnation.first_version);
  return out;
}

Result<Incarnation> decode_incarnation(std::string_view bytes) {
  Reader reader(bytes);
  if (Status status = check_format(&reader, "incarnation"); !status.ok()) return status;
  Incarnation incarnation;
  incarnation.id = reader.get<decltype(incarnation.id)>();
  incarnation.after_batch = reader.get<BatchNumber>();
  incarnation.first_version = reader.get<Version>();
  if (!reader.finished() || incarnation.first_version > kVersionMax) return malformed("incarnation");
  return incarnation;
}

void encode_state(const StoredRecord& record, std::string* out) {
  put(out, record.expires_us == 0 ? kValueFormat : kExpiringStateFormat);
  put(out, static_cast<std::uint8_t>(record.type));
  put(out, record.version);
  if (record.expires_us != 0) put(out, record.expires_us);
  switch (record.type) {
    case ValueType::absent: break;
    case ValueType::integer: put(out, record.integer); break;
    case ValueType::bytes: out->append(record.bytes); break;
  }
}

Status decode_state(std::string_view bytes, StoredRecord* record) {
  Reader reader(bytes);
  const bool expires = !bytes.empty() && static_cast<std::uint8_t>(bytes.front()) == kExpiringStateFormat;
  if (expires) {
    reader.get<std::uint8_t>();
  } else if (Status status = check_format(&reader, "state record", "formats 1 and 2"); !status.ok()) {
    return status;
  }
  record->type = static_cast<ValueType>(reader.get<std::uint8_t>());
  record->version = reader.get<Version>();
  record->expires_us = expires ? reader.get<TimeUs>() : 0;
  if (expires && (record->expires_us < 1 || record->type == ValueType::absent)) reader.fail();
  record->integer = 0;
  record->bytes = {};
  switch (record->type) {
    case ValueType::absent: break;
    case ValueType::integer: record->integer = reader.get<std::int64_t>(); break;
    case ValueType::bytes: record->bytes = reader.bytes(reader.rest().size()); break;
    default: reader.fail();
  }
  return reader.finished() && record->version <= kVersionMax ? Status() : malformed("state record");
}

std::string encode_session_key(std::uint64_t generation, const StoredSession& session) {
  std::string out = ordered_key(generation);
  put(&out, session.session.bytes);
  if (session.piece > 0) out += ordered_key(session.piece);
  return out;
}

Status decode_session_key(std::string_view bytes, std::uint64_t* generation, StoredSession* session) {
  constexpr std::size_t kNumber = 8, kFirst = kNumber + sizeof(SessionId::bytes), kFurther = kFirst + kNumber;
  if (bytes.size() != kFirst && bytes.size() != kFurther) return malformed("session key");
  *generation = number_of_key(bytes.substr(0, kNumber));
  session->session.bytes = load<decltype(SessionId::bytes)>(bytes.data() + kNumber);
  session->piece = bytes.size() == kFirst ? 0 : number_of_key(bytes.substr(kFirst));
  return bytes.size() == kFirst || session->piece > 0 ? Status() : malformed("session key");
}

std::string encode_session(const StoredSession& session) {
  std::string out;
  if (session.frozen) put(&out, kFrozenSessionFormat);
  const bool is_held = session.holder > 0;
  const std::uint8_t unheld_format = session.user.empty() ? kValueFormat : kUserSessionFormat;
  put(&out, is_held ? kHeldSessionFormat : unheld_format);
  put(&out, session.lease_us);
  if (is_held || !session.user.empty()) put_sized(&out, session.user);
  if (is_held) put(&out, session.holder);
  put(&out, session.acknowledged_through);
  put(&out, std::uint64_t{session.requests.size()});
  for (const StoredSession::Request& request : session.requests) {
    put(&out, request.number);
    put(&out, request.digest);
    put(&out, request.transactions);
    put(&out, std::uint64_t{request.results.size()});
    for (const std::string& results : request.results) put_sized(&out, results);
  }
  return out;
}

Status decode_session(std::string_view bytes, StoredSession* session) {
  session->frozen = !bytes.empty() && static_cast<std::uint8_t>(bytes.front()) == kFrozenSessionFormat;
  if (session->frozen) bytes.remove_prefix(1);
  Reader reader(bytes);
  const std::uint8_t format = bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes.front());
  const bool of_user = format == kUserSessionFormat, is_held = format == kHeldSessionFormat;
  if (of_user || is_held) {
    reader.get<std::uint8_t>();
  } else if (Status status = check_format(&reader, "session record", "formats 1 to 4"); !status.ok()) {
    return status;
  }
  session->lease_us = reader.get<DurationUs>();
  session->user.clear();
  if (of_user || is_held) session->user = reader.bytes(reader.get<std::uint32_t>());
  if (of_user && session->user.empty()) return malformed("session record");
  session->holder = is_held ? reader.get<std::uint64_t>() : 0;
  if (is_held && session->holder == 0) return malformed("session record");
  session->acknowledged_through = reader.get<std::uint64_t>();
  const auto requests = reader.get<std::uint64_t>();
  session->requests.clear();
  for (std::uint64_t i = 0; i < requests && reader.good(); ++i) {
    StoredSession::Request& request = session->requests.emplace_back();
    request.number = reader.get<std::uint64_t>();
    request.digest = reader.get<Hash128>();
    request.transactions = reader.get<std::uint32_t>();
    const auto results = reader.get<std::uint64_t>();
    for (std::uint64_t j = 0; j < results && reader.good(); ++j) {
      request.results.emplace_back(reader.bytes(reader.get<std::uint32_t>()));
    }
  }
  return reader.finished() ? Status() : malformed("session record");
}

std::string encode_checkpoint(const Checkpoint& checkpoint) {
  std::string out;
  put(&out, kValueFormat);
  put(&out, checkpoint.covers.batch);
  put(&out, checkpoint.covers.next_version);
  put(&out, checkpoint.covers.tombstone_floor);
  put(&out, checkpoint.covers.time_us);
  put(&out, checkpoint.covers.state_hash);
  put(&out, checkpoint.record_crc);
  put(&out, checkpoint.generation);
  put(&out, checkpoint.session_count);
  return out;
}

Result<Checkpoint> decode_checkpoint(std::string_view bytes) {
  Reader reader(bytes);
  if (Status status = check_format(&reader, "checkpoint"); !status.ok()) return status;
  Checkpoint checkpoint;
  checkpoint.covers.batch = reader.get<BatchNumber>();
  checkpoint.covers.checkpoint_batch = checkpoint.covers.batch;
  checkpoint.covers.next_version = reader.get<Version>();
  checkpoint.covers.tombstone_floor = reader.get<Version>();
  checkpoint.covers.time_us = reader.get<TimeUs>();
  checkpoint.covers.state_hash = reader.get<Hash128>();
  checkpoint.record_crc = reader.get<std::uint32_t>();
  checkpoint.generation = reader.get<std::uint64_t>();
  checkpoint.session_count = reader.get<std::uint64_t>();
  if (!reader.finished()) return malformed("checkpoint");
  return checkpoint;
}

std::string encode_access(std::string_view table) {
  std::string out;
  put(&out, kValueFormat);
  out.append(table);
  return out;
}

Result<std::string_view> decode_access(std::string_view bytes) {
  Reader reader(bytes);
  if (Status status = check_format(&reader, "access table"); !status.ok()) return status;
  return reader.rest();
}

std::string encode_segment(const LogSegment& segment) {
  std::string out;
  put(&out, kValueFormat);
  put(&out, segment.last_batch);
  put(&out, segment.last_time_us);
  put(&out, segment.bytes);
  return out;
}

Status decode_segment(std::string_view bytes, LogSegment* segment) {
  Reader reader(bytes);
  if (Status status = check_format(&reader, "log segment"); !status.ok()) return status;
  segment->last_batch = reader.get<BatchNumber>();
  segment->last_time_us = reader.get<TimeUs>();
  segment->bytes = reader.get<std::uint64_t>();
  return reader.finished() && segment->last_batch >= segment->first_batch ? Status() : malformed("log segment");
}

}  // namespace kilokv::server::storage
