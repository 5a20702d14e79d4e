#include "tests/support/memory_log.hpp"

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

StoredRecord with_views(const StoredRecord& record, const std::string& key, const std::string& bytes) {
  StoredRecord viewed = record;
  viewed.key = key;
  viewed.bytes = bytes;
  return viewed;
}

}  // namespace

Result<RecoveredPosition> MemoryLog::recover(RecoveryVisitor* visitor) {
  DatabaseIdentity identity;
  identity.key_secret = {1, 2};
  if (Status status = visitor->identity(identity); !status.ok()) return status;
  if (!access_table_.empty()) {
    if (Status status = visitor->access_table(access_table_); !status.ok()) return status;
  }
  for (const auto& [key, write] : state_) {
    if (Status status = visitor->state_record(with_views(write.record, key, write.bytes)); !status.ok()) return status;
  }
  for (const StoredSession& session : sessions_) {
    if (Status status = visitor->session(session); !status.ok()) return status;
  }
  for (const auto& [batch, record] : records_) {
    if (batch <= covers_.batch) continue;
    if (Status status = replay(record, visitor); !status.ok()) return status;
  }
  reserved_ = 0;
  RecoveredPosition position = last_;
  position.checkpoint_batch = covers_.batch;
  return position;
}

Status MemoryLog::replay(const Record& record, RecoveryVisitor* visitor) const {
  Status status = visitor->batch_begin(record.header, record.tombstone_floor);
  for (const Write& write : record.writes) {
    if (status.ok()) status = visitor->batch_write(with_views(write.record, write.key, write.bytes));
  }
  for (const Session& session : record.sessions) {
    SessionEntry entry = session.entry;
    entry.results = session.results;
    if (status.ok()) status = visitor->batch_session(entry);
  }
  for (const std::string& change : record.access) {
    if (status.ok()) status = visitor->batch_access(change);
  }
  return status.ok() ? visitor->batch_end(record.state_hash) : status;
}

Status MemoryLog::reserve(std::uint64_t bytes, LogUse use) {
  if (holds_up_ && use != LogUse::access_changes) {
    return Status::exhausted(ErrorReason::archive_late, {"archive", "0 bytes", "1 byte", "--archive-lag-max"}, 1000000);
  }
  if (use == LogUse::new_data && reserved_ + bytes > reserve_limit_) {
    return Status::exhausted(ErrorReason::disk_full,
                             {"disk", std::to_string(reserve_limit_) + " bytes",
                              std::to_string(reserved_ + bytes) + " bytes", "--disk-reserve"},
                             1000000);
  }
  reserved_ += bytes;
  return {};
}

Status MemoryLog::append(std::span<const LogRecord> records) {
  if (fail_append_) return Status(StatusCode::internal, "injected: the sync failed");
  ++appends_;
  for (const LogRecord& record : records) {
    KILOKV_CHECK(record.header.number == last_.batch + 1);
    KILOKV_CHECK(record.header.first_version == last_.next_version);
    KILOKV_CHECK(record.header.time_us >= last_.time_us);
    Record kept{record.header,
                record.next_version,
                record.tombstone_floor,
                record.state_hash,
                {},
                {},
                {record.access.begin(), record.access.end()}};
    const engine::WriteColumns& writes = *record.writes;
    std::size_t value = 0, expiry = 0;
    expired_ += record.expired ? writes.size() : 0;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      Write write;
      if (expiry < writes.expiry_write.size() && writes.expiry_write[expiry] == i) {
        write.record.expires_us = writes.expires_us[expiry++];
      }
      write.key = writes.key(i);
      write.record.version = record.header.first_version + writes.rank[i];
      write.record.type = static_cast<ValueType>(writes.type[i]);
      write.record.integer = writes.word[i];
      if (write.record.type == ValueType::bytes) {
        const std::size_t begin = value == 0 ? 0 : writes.value_end[value - 1];
        write.bytes.assign(writes.value_bytes.data() + begin, writes.value_end[value] - begin);
        ++value;
      }
      kept.writes.push_back(std::move(write));
    }
    for (const SessionEntry& entry : record.sessions) {
      kept.sessions.push_back({entry, std::string(entry.results)});
      kept.sessions.back().entry.results = {};
    }
    last_.batch = record.header.number;
    last_.next_version = record.next_version;
    last_.tombstone_floor = record.tombstone_floor;
    last_.time_us = record.header.time_us;
    last_.state_hash = record.state_hash;
    records_.emplace(record.header.number, std::move(kept));
  }
  return {};
}

Status MemoryLog::checkpoint_begin() {
  next_sessions_.clear();
  return {};
}

Status MemoryLog::checkpoint_session(const StoredSession& session) {
  next_sessions_.push_back(session);
  return {};
}

Status MemoryLog::checkpoint_records(std::span<const StoredRecord> records) {
  for (const StoredRecord& record : records) {
    KILOKV_CHECK(record.version < last_.next_version);  // a checkpoint never holds what is not durable
    Write write{std::string(record.key), std::string(record.bytes), record};
    write.record.key = write.record.bytes = {};
    state_[write.key] = std::move(write);
  }
  return {};
}

Status MemoryLog::checkpoint_drop(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) state_.erase(std::string(key));
  return {};
}

Status MemoryLog::checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) {
  KILOKV_CHECK(covers.batch >= covers_.batch && covers.batch <= last_.batch);
  covers_ = covers;
  sessions_ = std::move(next_sessions_);
  access_table_ = access_table;
  return {};
}

Status MemoryLog::trim(TimeUs) {
  records_.erase(records_.begin(), records_.upper_bound(covers_.batch));
  return {};
}

LogUsage MemoryLog::usage() const {
  LogUsage usage;
  usage.reserved_bytes = reserved_;
  usage.first_batch = records_.empty() ? 0 : records_.begin()->first;
  return usage;
}

}  // namespace kilokv::server
