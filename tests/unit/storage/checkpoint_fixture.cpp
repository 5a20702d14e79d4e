#include "tests/unit/storage/checkpoint_fixture.hpp"

namespace kilokv::server::storage {
namespace {

// Applies the sample batches to the table.
void replay(BatchNumber from, BatchNumber to, Table* table) {
  for (BatchNumber number = from; number <= to; ++number) {
    const Batch batch = sample_batch(number);
    std::size_t values = 0;
    for (std::size_t i = 0; i < batch.writes.size(); ++i) {
      StoredRecord record{.key = batch.writes.key(i),
                          .version = batch.header.first_version + batch.writes.rank[i],
                          .type = static_cast<ValueType>(batch.writes.type[i]),
                          .integer = batch.writes.word[i],
                          .bytes = {}};
      if (record.type == ValueType::bytes) {
        const std::uint32_t begin = values == 0 ? 0 : batch.writes.value_end[values - 1];
        record.bytes = {batch.writes.value_bytes.data() + begin, batch.writes.value_end[values] - begin};
        ++values;
      }
      static_cast<void>(table->load(record));
    }
  }
}

std::vector<StoredSession> sample_sessions(std::size_t count, BatchNumber batch) {
  std::vector<StoredSession> sessions(count);
  for (std::size_t i = 0; i < count; ++i) {
    sessions[i].session.bytes[0] = static_cast<unsigned char>(i);
    sessions[i].acknowledged_through = batch;
    sessions[i].requests = {{.number = batch + 1, .digest = {}, .transactions = 2, .results = {"stored"}}};
  }
  return sessions;
}

}  // namespace

Status Table::session(const StoredSession& session) {
  sessions.push_back(session);
  return {};
}

Status Table::batch_begin(const engine::BatchHeader&, Version) {
  ++batches;
  return {};
}

Status Table::load(const StoredRecord& record) {
  const auto it = records.try_emplace(std::string(record.key)).first;
  if (record.version < it->second.version) return {};
  bytes[it->first] = record.bytes;
  it->second = record;
  it->second.key = it->first;
  it->second.bytes = bytes[it->first];
  texts[it->first] = std::to_string(record.version) + "/" + std::to_string(static_cast<int>(record.type)) + "/" +
                     std::to_string(record.integer) + "/" + std::string(record.bytes);
  return {};
}

std::map<std::string, std::string> state_after(BatchNumber batch) {
  Table table;
  replay(1, batch, &table);
  return table.texts;
}

Status checkpoint(CommitLog* log, BatchNumber covers, BatchNumber records_of, std::size_t sessions) {
  Table table;
  replay(1, records_of, &table);
  std::vector<StoredRecord> records;
  for (const auto& [key, record] : table.records) records.push_back(record);
  if (Status status = log->checkpoint_begin(); !status.ok()) return status;
  if (Status status = log->checkpoint_records(records); !status.ok()) return status;
  for (const StoredSession& session : sample_sessions(sessions, covers)) {
    if (Status status = log->checkpoint_session(session); !status.ok()) return status;
  }
  return log->checkpoint_end(position_after(sample_batch(covers)), {});
}

}  // namespace kilokv::server::storage
