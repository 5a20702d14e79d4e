#include "server/storage/log_record.hpp"

#include <algorithm>
#include <string>

#include "engine/base/check.hpp"
#include "server/storage/crc32c.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kSessionEntryBytesMin = 17;  // the kind and the session of an entry that has no more

constexpr std::uint8_t kOpenedByUser = 4;  // an opened session with a user; with the other kinds of SessionEntry
constexpr std::uint16_t kKnownFlags = kHasAccess | kHasAttach | kHasExpiries | kExpired;

void put_sized(std::string_view bytes, std::string* out) {
  KILOKV_CHECK(bytes.size() <= UINT32_MAX);
  put(out, static_cast<std::uint32_t>(bytes.size()));
  out->append(bytes);
}

void put_sessions(std::span<const SessionEntry> entries, std::string* out) {
  for (const SessionEntry& entry : entries) {
    const bool by_user = entry.kind == SessionEntry::Kind::opened && !entry.user.empty();
    put(out, by_user ? kOpenedByUser : static_cast<std::uint8_t>(entry.kind));
    put(out, entry.identity.session->bytes);
    switch (entry.kind) {
      case SessionEntry::Kind::opened:
        put(out, entry.lease_us);
        if (!entry.user.empty()) put_sized(entry.user, out);
        break;
      case SessionEntry::Kind::closed: break;
      case SessionEntry::Kind::attached:
        put(out, entry.identity.holder);
        put(out, entry.identity.acknowledged_through);
        break;
      case SessionEntry::Kind::results:
        put(out, entry.identity.number);
        put(out, entry.identity.acknowledged_through);
        put(out, entry.identity.digest);
        put(out, entry.transactions);
        put_sized(entry.results, out);
        break;
    }
  }
}

bool has_attach(std::span<const SessionEntry> entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const SessionEntry& entry) { return entry.kind == SessionEntry::Kind::attached; });
}

std::uint16_t flags_of(const LogRecord& record) {
  const bool has_expiries = record.writes != nullptr && !record.writes->expiry_write.empty();
  return static_cast<std::uint16_t>((record.access.empty() ? 0 : kHasAccess) |
                                    (has_attach(record.sessions) ? kHasAttach : 0) | (has_expiries ? kHasExpiries : 0) |
                                    (record.expired ? kExpired : 0));
}

// The writes whose keys expire, each by its distance from the one before it, and the times.
void put_expiries(const engine::WriteColumns& writes, std::string* out) {
  const std::size_t count = writes.expiry_write.size();
  put(out, static_cast<std::uint32_t>(count));
  put_integer_column(out, count, [&](std::size_t i) {
    return std::int64_t{writes.expiry_write[i]} - (i == 0 ? -1 : std::int64_t{writes.expiry_write[i - 1]});
  });
  put_integer_column(out, count, [&](std::size_t i) { return writes.expires_us[i]; });
}

void put_access(std::span<const std::string> changes, std::string* out) {
  put(out, static_cast<std::uint32_t>(changes.size()));
  for (const std::string& change : changes) put_sized(change, out);
}

void put_writes(const engine::WriteColumns& writes, std::string* out) {
  const std::size_t count = writes.size();
  put_integer_column(out, count, [&](std::size_t i) { return std::int64_t{writes.type[i]}; });
  put_integer_column(out, count, [&](std::size_t i) {
    return std::int64_t{writes.rank[i]} - (i == 0 ? 0 : std::int64_t{writes.rank[i - 1]});
  });
  put_integer_column(out, count, [&](std::size_t i) { return writes.word[i]; });
  put_integer_column(out, count, [&](std::size_t i) {
    return std::int64_t{writes.key_end[i]} - (i == 0 ? 0 : std::int64_t{writes.key_end[i - 1]});
  });
  put_integer_column(out, writes.value_end.size(), [&](std::size_t i) {
    return std::int64_t{writes.value_end[i]} - (i == 0 ? 0 : std::int64_t{writes.value_end[i - 1]});
  });
  out->append(writes.key_bytes.data(), writes.key_bytes.size());
  out->append(writes.value_bytes.data(), writes.value_bytes.size());
}

Status damaged(const std::string& reason) { return {StatusCode::data_loss, "log record: " + reason}; }

// Reads one entry. The bytes are not checked yet. An unknown kind makes the reader fail.
SessionEntry read_session(Reader* reader) {
  SessionEntry entry;
  const auto kind = reader->get<std::uint8_t>();
  entry.kind = kind == kOpenedByUser ? SessionEntry::Kind::opened : static_cast<SessionEntry::Kind>(kind);
  entry.identity.session.emplace().bytes = reader->get<decltype(SessionId::bytes)>();
  switch (entry.kind) {
    case SessionEntry::Kind::opened:
      entry.lease_us = reader->get<DurationUs>();
      if (kind == kOpenedByUser) entry.user = reader->bytes(reader->get<std::uint32_t>());
      if (kind == kOpenedByUser && entry.user.empty()) reader->fail();
      return entry;
    case SessionEntry::Kind::closed: return entry;
    case SessionEntry::Kind::attached:
      entry.identity.holder = reader->get<std::uint64_t>();
      entry.identity.acknowledged_through = reader->get<std::uint64_t>();
      if (entry.identity.holder == 0) reader->fail();
      return entry;
    case SessionEntry::Kind::results:
      entry.identity.number = reader->get<std::uint64_t>();
      entry.identity.acknowledged_through = reader->get<std::uint64_t>();
      entry.identity.digest = reader->get<Hash128>();
      entry.transactions = reader->get<std::uint32_t>();
      entry.results = reader->bytes(reader->get<std::uint32_t>());
      return entry;
  }
  reader->fail();
  return entry;
}

}  // namespace

std::uint32_t encode_record(const LogRecord& record, std::uint32_t previous_crc, std::string* out) {
  static const engine::WriteColumns kNoWrites;
  const engine::WriteColumns& writes = record.writes != nullptr ? *record.writes : kNoWrites;
  KILOKV_CHECK(writes.size() <= UINT32_MAX && record.sessions.size() <= UINT32_MAX);
  const std::size_t begin = out->size();
  put(out, kRecordMagic);
  put(out, kRecordFormat);
  put(out, flags_of(record));
  put(out, previous_crc);
  put(out, record.transactions);
  put(out, record.header.number);
  put(out, record.header.time_us);
  put(out, record.header.first_version);
  put(out, record.next_version);
  put(out, record.tombstone_floor);
  put(out, record.state_hash);
  put(out, static_cast<std::uint32_t>(writes.size()));
  put(out, static_cast<std::uint32_t>(record.sessions.size()));
  put(out, std::uint64_t{writes.key_bytes.size()});
  put(out, std::uint64_t{writes.value_bytes.size()});
  KILOKV_CHECK(out->size() - begin == kRecordHeaderBytes);
  put_writes(writes, out);
  put_sessions(record.sessions, out);
  if (!record.access.empty()) put_access(record.access, out);
  if (!writes.expiry_write.empty()) put_expiries(writes, out);
  const std::uint32_t crc = crc32c(std::string_view(*out).substr(begin));
  put(out, crc);
  return crc;
}

Result<RecordView> RecordView::parse(std::string_view bytes) {
  if (bytes.size() < sizeof kRecordMagic + kCrcBytes) return damaged("only " + std::to_string(bytes.size()) + " bytes");
  RecordView view;
  view.crc_ = load<std::uint32_t>(bytes.data() + bytes.size() - kCrcBytes);
  bytes.remove_suffix(kCrcBytes);
  if (crc32c(bytes) != view.crc_) return damaged("checksum mismatch");
  Reader reader(bytes);
  if (reader.get<std::uint32_t>() != kRecordMagic) return damaged("not a log record");
  const auto format = reader.get<std::uint16_t>();
  const auto flags = reader.get<std::uint16_t>();
  if (format != kRecordFormat || (flags & ~kKnownFlags) != 0) {
    return Status(StatusCode::failed_precondition, ErrorReason::failed,
                  "log record has format " + std::to_string(format) + ", flags " + std::to_string(flags) +
                      "; this version reads format 1, flags 0 to 15");
  }
  view.previous_crc_ = reader.get<std::uint32_t>();
  view.transactions_ = reader.get<std::uint32_t>();
  view.header_.number = reader.get<BatchNumber>();
  view.header_.time_us = reader.get<TimeUs>();
  view.header_.first_version = reader.get<Version>();
  view.next_version_ = reader.get<Version>();
  view.tombstone_floor_ = reader.get<Version>();
  view.state_hash_ = reader.get<Hash128>();
  view.writes_ = reader.get<std::uint32_t>();
  view.sessions_ = reader.get<std::uint32_t>();
  const auto key_bytes = reader.get<std::uint64_t>();
  const auto value_bytes = reader.get<std::uint64_t>();
  // Checked before any loop: a count that the bytes cannot hold would cost its time, and memory later. Each write has a
  // key of at least one byte.
  const std::size_t left = reader.rest().size();
  if (view.writes_ > key_bytes || key_bytes > left || value_bytes > left)
    return damaged("more writes than its bytes hold");
  if (view.sessions_ > left / kSessionEntryBytesMin) return damaged("more session entries than its bytes hold");
  if (Status status = view.parse_writes(&reader, key_bytes, value_bytes); !status.ok()) return status;
  view.session_entries_ = reader.rest();
  if (Status status = view.parse_sessions(&reader, (flags & kHasAttach) != 0); !status.ok()) return status;
  if ((flags & kHasAccess) != 0) {
    if (Status status = view.parse_access(&reader); !status.ok()) return status;
  }
  if ((flags & kHasExpiries) != 0) {
    if (Status status = view.parse_expiries(&reader); !status.ok()) return status;
  }
  view.expired_ = (flags & kExpired) != 0;
  if (!reader.finished()) return damaged("bytes after its end");
  return view;
}

// Checks everything that visit_writes relies on, so that a visit never stops half way.
Status RecordView::parse_writes(Reader* reader, std::uint64_t key_bytes, std::uint64_t value_bytes) {
  type_ = IntegerColumn(reader, writes_);
  if (!reader->good()) return damaged("types are cut short");
  std::size_t values = 0;
  for (std::size_t i = 0; i < writes_; ++i) {
    const std::int64_t type = type_[i];
    if (type < 0 || type > static_cast<std::int64_t>(ValueType::bytes)) return damaged("unknown value type");
    values += type == static_cast<std::int64_t>(ValueType::bytes);
  }
  rank_step_ = IntegerColumn(reader, writes_);
  word_ = IntegerColumn(reader, writes_);
  key_bytes_ = IntegerColumn(reader, writes_);
  value_bytes_ = IntegerColumn(reader, values);
  keys_ = reader->bytes(key_bytes);
  values_ = reader->bytes(value_bytes);
  if (!reader->good()) return damaged("columns are cut short");
  std::uint64_t rank = 0;
  for (std::size_t i = 0; i < writes_; ++i) {
    if (rank_step_[i] < 0 || rank_step_[i] > UINT32_MAX) return damaged("ranks go back");
    rank += static_cast<std::uint64_t>(rank_step_[i]);
    if (rank > UINT32_MAX) return damaged("a rank is beyond its limit");
    if (key_bytes_[i] < 1 || static_cast<std::uint64_t>(key_bytes_[i]) > key_bytes) return damaged("key length");
    key_bytes -= static_cast<std::uint64_t>(key_bytes_[i]);
  }
  for (std::size_t i = 0; i < values; ++i) {
    if (value_bytes_[i] < 0 || static_cast<std::uint64_t>(value_bytes_[i]) > value_bytes)
      return damaged("value length");
    value_bytes -= static_cast<std::uint64_t>(value_bytes_[i]);
  }
  if (key_bytes != 0 || value_bytes != 0) return damaged("lengths do not add up");
  if (writes_ == 0) return {};
  // Without the first comparison, a first version near 2^64 would wrap around.
  const bool fits = header_.first_version < next_version_ && rank < next_version_ - header_.first_version;
  return fits && next_version_ <= kVersionMax ? Status() : damaged("a version is beyond the batch");
}

// `has_attach`: what the flags say.
Status RecordView::parse_sessions(Reader* reader, bool has_attach) {
  bool attaches = false;
  for (std::uint32_t i = 0; i < sessions_ && reader->good(); ++i) {
    attaches |= read_session(reader).kind == SessionEntry::Kind::attached;
  }
  if (!reader->good()) return damaged("session entries are cut short or unknown");
  return attaches == has_attach ? Status() : damaged("its flags contradict its session entries");
}

// Checks the lengths; core checks what is in the changes.
Status RecordView::parse_access(Reader* reader) {
  access_changes_ = reader->get<std::uint32_t>();
  access_ = reader->rest();
  if (access_changes_ == 0 || access_changes_ > access_.size() / sizeof(std::uint32_t)) {
    return damaged("more access changes than its bytes hold");
  }
  for (std::uint32_t i = 0; i < access_changes_ && reader->good(); ++i) reader->bytes(reader->get<std::uint32_t>());
  return reader->good() ? Status() : damaged("access changes are cut short");
}

Status RecordView::parse_expiries(Reader* reader) {
  expiries_ = reader->get<std::uint32_t>();
  if (expiries_ == 0 || expiries_ > writes_) return damaged("more expiries than writes, or none");
  expiry_step_ = IntegerColumn(reader, expiries_);
  expires_us_ = IntegerColumn(reader, expiries_);
  if (!reader->good()) return damaged("expiries are cut short");
  std::int64_t write = -1;
  for (std::size_t i = 0; i < expiries_; ++i) {
    if (expiry_step_[i] < 1 || expiry_step_[i] >= std::int64_t{writes_} - write)
      return damaged("an expiry of no write");
    write += expiry_step_[i];
    if (type_[static_cast<std::size_t>(write)] == static_cast<std::int64_t>(ValueType::absent)) {
      return damaged("a delete with an expiry");
    }
    if (expires_us_[i] < 1) return damaged("an expiry before all times");
  }
  return {};
}

Status RecordView::visit(RecoveryVisitor* visitor) const {
  if (Status status = visitor->batch_begin(header_, tombstone_floor_); !status.ok()) return status;
  if (Status status = visit_writes(visitor); !status.ok()) return status;
  if (Status status = visit_sessions(visitor); !status.ok()) return status;
  if (Status status = visit_access(visitor); !status.ok()) return status;
  return visitor->batch_end(state_hash_);
}

Status RecordView::visit_access(RecoveryVisitor* visitor) const {
  Reader reader(access_);
  for (std::uint32_t i = 0; i < access_changes_; ++i) {
    if (Status status = visitor->batch_access(reader.bytes(reader.get<std::uint32_t>())); !status.ok()) return status;
  }
  return {};
}

Status RecordView::visit_writes(RecoveryVisitor* visitor) const {
  StoredRecord write;
  Version version = header_.first_version;
  std::size_t key = 0, value = 0, values = 0, expiry = 0;
  std::int64_t expires = expiries_ > 0 ? expiry_step_[0] - 1 : -1;  // the next write whose key expires
  for (std::size_t i = 0; i < writes_; ++i) {
    version += static_cast<Version>(rank_step_[i]);
    write.version = version;
    write.type = static_cast<ValueType>(type_[i]);
    write.integer = word_[i];
    write.key = keys_.substr(key, static_cast<std::size_t>(key_bytes_[i]));
    key += write.key.size();
    write.bytes = {};
    if (write.type == ValueType::bytes) {
      write.bytes = values_.substr(value, static_cast<std::size_t>(value_bytes_[values++]));
      value += write.bytes.size();
    }
    write.expires_us = 0;
    if (std::int64_t{expires} == static_cast<std::int64_t>(i)) {
      write.expires_us = expires_us_[expiry];
      expires = ++expiry < expiries_ ? expires + expiry_step_[expiry] : -1;
    }
    if (Status status = visitor->batch_write(write); !status.ok()) return status;
  }
  return {};
}

Status RecordView::visit_sessions(RecoveryVisitor* visitor) const {
  Reader reader(session_entries_);
  for (std::uint32_t i = 0; i < sessions_; ++i) {
    if (Status status = visitor->batch_session(read_session(&reader)); !status.ok()) return status;
  }
  return {};
}

}  // namespace kilokv::server::storage
