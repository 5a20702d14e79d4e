#include "tests/unit/storage/log_fixture.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace kilokv::server::storage {
namespace {

std::string text_of(const StoredRecord& record) {
  return "key=" + std::string(record.key) + " version=" + std::to_string(record.version) +
         " type=" + std::to_string(static_cast<int>(record.type)) + " integer=" + std::to_string(record.integer) +
         " bytes=" + std::string(record.bytes) +
         (record.expires_us == 0 ? "" : " expires=" + std::to_string(record.expires_us));
}

std::string text_of(const SessionId& id) {
  std::string text;
  for (const unsigned char byte : id.bytes) text += std::to_string(byte) + ".";
  return text;
}

std::string text_of(Hash128 hash) { return std::to_string(hash.high) + ":" + std::to_string(hash.low); }

std::string text_of(const SessionEntry& entry) {
  std::string text =
      "entry kind=" + std::to_string(static_cast<int>(entry.kind)) + " id=" + text_of(*entry.identity.session);
  if (entry.kind == SessionEntry::Kind::opened)
    text += " lease=" + std::to_string(entry.lease_us) + " user=" + entry.user;
  if (entry.kind == SessionEntry::Kind::attached) {
    text += " holder=" + std::to_string(entry.identity.holder) +
            " acknowledged=" + std::to_string(entry.identity.acknowledged_through);
  }
  if (entry.kind != SessionEntry::Kind::results) return text;
  return text + " request=" + std::to_string(entry.identity.number) +
         " acknowledged=" + std::to_string(entry.identity.acknowledged_through) +
         " digest=" + text_of(entry.identity.digest) + " transactions=" + std::to_string(entry.transactions) +
         " results=" + std::string(entry.results);
}

std::string text_of(const engine::BatchHeader& header, Version floor) {
  return "batch " + std::to_string(header.number) + " time=" + std::to_string(header.time_us) +
         " first=" + std::to_string(header.first_version) + " floor=" + std::to_string(floor);
}

SessionId session_id(BatchNumber number) {
  SessionId id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<unsigned char>(number * 31 + i);
  return id;
}

}  // namespace

void copy_directory(const std::string& from, const std::string& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

std::string newest_write_ahead_log(const std::string& directory) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") newest = std::max(newest, entry.path().string());
  }
  return newest;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

Status Transcript::identity(const DatabaseIdentity& identity) {
  seen_identity = identity;
  return {};
}

Status Transcript::state_record(const StoredRecord& record) {
  lines.push_back("state " + text_of(record));
  return {};
}

Status Transcript::session(const StoredSession& session) {
  ++sessions;
  if (session.frozen) ++frozen_sessions;
  std::string line = "session id=" + text_of(session.session) + " lease=" + std::to_string(session.lease_us) +
                     " acknowledged=" + std::to_string(session.acknowledged_through) +
                     " holder=" + std::to_string(session.holder);
  for (const auto& request : session.requests) {
    line += " request=" + std::to_string(request.number) + " digest=" + text_of(request.digest) +
            " transactions=" + std::to_string(request.transactions);
    for (const std::string& results : request.results) line += " results=" + results;
  }
  lines.push_back(line);
  return {};
}

Status Transcript::batch_begin(const engine::BatchHeader& header, Version tombstone_floor) {
  lines.push_back(text_of(header, tombstone_floor));
  return {};
}

Status Transcript::batch_write(const StoredRecord& record) {
  lines.push_back("write " + text_of(record));
  return {};
}

Status Transcript::batch_session(const SessionEntry& entry) {
  lines.push_back(text_of(entry));
  return {};
}

Status Transcript::access_table(std::string_view table) {
  lines.push_back("access table " + std::string(table));
  return {};
}

Status Transcript::batch_access(std::string_view change) {
  lines.push_back("access " + std::string(change));
  return {};
}

Status Transcript::batch_end(Hash128 state_hash) {
  lines.push_back("end " + text_of(state_hash));
  return {};
}

Batch::Batch(BatchNumber number) {
  header = {.number = number, .time_us = static_cast<TimeUs>(1000000 + number * 10), .first_version = number * 1000};
  next_version = header.first_version + 1000;
  state_hash = {.low = number * 0x9E3779B97F4A7C15u, .high = ~number};
}

void Batch::write(std::uint32_t rank, const std::string& key, ValueType type, std::int64_t word) {
  writes.rank.push_back(rank);
  writes.type.push_back(static_cast<std::uint8_t>(type));
  writes.word.push_back(word);
  writes.key_bytes.insert(writes.key_bytes.end(), key.begin(), key.end());
  writes.key_end.push_back(static_cast<std::uint32_t>(writes.key_bytes.size()));
  transactions = std::max(transactions, rank + 1);
}

void Batch::write_integer(std::uint32_t rank, const std::string& key, std::int64_t value) {
  write(rank, key, ValueType::integer, value);
}

void Batch::write_bytes(std::uint32_t rank, const std::string& key, const std::string& value) {
  write(rank, key, ValueType::bytes, 0);
  writes.value_bytes.insert(writes.value_bytes.end(), value.begin(), value.end());
  writes.value_end.push_back(static_cast<std::uint32_t>(writes.value_bytes.size()));
}

void Batch::erase(std::uint32_t rank, const std::string& key) { write(rank, key, ValueType::absent, 0); }

void Batch::expire(TimeUs expires_us) {
  writes.expiry_write.push_back(static_cast<std::uint32_t>(writes.size() - 1));
  writes.expires_us.push_back(expires_us);
}

LogRecord Batch::record() const {
  return {.header = header,
          .next_version = next_version,
          .tombstone_floor = tombstone_floor,
          .transactions = transactions,
          .state_hash = state_hash,
          .writes = &writes,
          .sessions = sessions,
          .access = access,
          .expired = expired};
}

std::vector<std::string> Batch::lines() const {
  std::vector<std::string> lines = {text_of(header, tombstone_floor)};
  std::size_t value = 0, expiry = 0;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    StoredRecord record{.key = writes.key(i),
                        .version = header.first_version + writes.rank[i],
                        .type = static_cast<ValueType>(writes.type[i]),
                        .integer = writes.word[i],
                        .bytes = {}};
    if (record.type == ValueType::bytes) {
      const std::uint32_t begin = value == 0 ? 0 : writes.value_end[value - 1];
      record.bytes = {writes.value_bytes.data() + begin, writes.value_end[value] - begin};
      ++value;
    }
    if (expiry < writes.expiry_write.size() && writes.expiry_write[expiry] == i) {
      record.expires_us = writes.expires_us[expiry++];
    }
    lines.push_back("write " + text_of(record));
  }
  for (const SessionEntry& entry : sessions) lines.push_back(text_of(entry));
  for (const std::string& change : access) lines.push_back("access " + change);
  lines.push_back("end " + text_of(state_hash));
  return lines;
}

Batch sample_batch(BatchNumber number) {
  Batch batch(number);
  batch.tombstone_floor = number / 2;
  if (number % 7 == 0) return batch;
  const auto signed_number = static_cast<std::int64_t>(number);
  batch.write_integer(0, "account-" + std::to_string(number % 5), 1000 - signed_number);
  batch.write_integer(0, "account-" + std::to_string((number + 1) % 5), INT64_MAX - signed_number);
  batch.write_bytes(2, "text-" + std::to_string(number % 3), std::string(number % 50, 'x'));
  batch.write_integer(2, "low", INT64_MIN + signed_number);
  batch.erase(70, "account-" + std::to_string((number + 2) % 5));
  SessionEntry opened{.identity = {.session = session_id(number), .digest = {}}, .lease_us = 60000000, .results = {}};
  SessionEntry results{.kind = SessionEntry::Kind::results,
                       .identity = {.session = session_id(number - 1),
                                    .number = number,
                                    .acknowledged_through = number - 1,
                                    .digest = {.low = number, .high = 7}},
                       .transactions = 3,
                       .results = "answers"};
  SessionEntry closed = opened;
  closed.kind = SessionEntry::Kind::closed;
  SessionEntry opened_by_user = opened;
  opened_by_user.user = "alice";
  batch.sessions = {opened, results, closed, opened_by_user};
  SessionEntry attached = opened;
  attached.kind = SessionEntry::Kind::attached;
  attached.identity.holder = number + 1;
  attached.identity.acknowledged_through = number + 2;
  if (number % 4 == 0) batch.sessions.push_back(attached);
  if (number % 3 == 0) batch.access = {"a change", std::string(number, 'a')};
  return batch;
}

RecoveredPosition position_after(const Batch& batch) {
  return {.batch = batch.header.number,
          .checkpoint_batch = batch.header.number,
          .next_version = batch.next_version,
          .tombstone_floor = batch.tombstone_floor,
          .time_us = batch.header.time_us,
          .state_hash = batch.state_hash};
}

StorageOptions options_for(const std::string& directory) {
  StorageOptions options;
  options.data_dir = directory;
  return options;
}

OpenLog::OpenLog(const StorageOptions& options) {
  auto opened = open_rocksdb_log(options);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  if (!opened.ok()) return;
  log = std::move(*opened);
  const Result<RecoveredPosition> recovered = log->recover(&transcript);
  EXPECT_TRUE(recovered.ok()) << recovered.status().message();
  if (!recovered.ok()) return;
  position = *recovered;
  EXPECT_TRUE(log->end_recovery().ok());
}

void OpenLog::append(BatchNumber from, BatchNumber to) {
  for (BatchNumber number = from; number <= to; ++number) {
    const Batch batch = sample_batch(number);
    const LogRecord record = batch.record();
    const Status status = log->append({&record, 1});
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

Status open_status(const StorageOptions& options, Transcript* transcript) {
  auto opened = open_rocksdb_log(options);
  if (!opened.ok()) return opened.status();
  Transcript unread;
  Status status = (*opened)->recover(transcript != nullptr ? transcript : &unread).status();
  if (status.ok()) status = (*opened)->end_recovery();
  return status;
}

std::vector<std::string> sample_lines(BatchNumber from, BatchNumber to) {
  std::vector<std::string> lines;
  for (BatchNumber number = from; number <= to; ++number) {
    const std::vector<std::string> more = sample_batch(number).lines();
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace kilokv::server::storage
