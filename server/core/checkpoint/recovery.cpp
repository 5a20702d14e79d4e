#include "server/core/checkpoint/recovery.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "server/core/access/access.hpp"
#include "server/core/access/access_record.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kPrefetchAhead = 16;  // writes

}  // namespace

Recovery::Recovery(const Clock* clock, EngineFactory create_engine, SessionTable* sessions)
    : clock_(clock), create_engine_(std::move(create_engine)), sessions_(sessions) {}

Status Recovery::identity(const DatabaseIdentity& identity) {
  secret_ = identity.key_secret;
  auto engine = create_engine_(secret_);
  if (!engine.ok()) return engine.status();
  engine_ = std::move(*engine);
  return {};
}

Status Recovery::load(const StoredRecord& record) {
  largest_value_ = std::max<std::uint64_t>(largest_value_, record.bytes.size());
  return engine_->load(record.key, record.version, record.type, record.integer, record.bytes);
}

void Recovery::raise_floor(Version floor) {
  if (floor > engine_->tombstone_floor()) {
    engine_->drop_tombstones(floor, [this](std::string_view key) { dropped_.emplace_back(key); });
  }
}

Status Recovery::state_record(const StoredRecord& record) { return load(record); }

Status Recovery::session(const StoredSession& session) { return sessions_->restore(session, clock_->monotonic_us()); }

Status Recovery::batch_begin(const engine::BatchHeader&, Version tombstone_floor) {
  // The records of the checkpoint are in the stored state already. Later records are not, so only these become dirty.
  if (!in_batches_) engine_->clear_dirty();
  in_batches_ = true;
  raise_floor(tombstone_floor);
  return {};
}

Status Recovery::batch_write(const StoredRecord& record) {
  engine_->prefetch(record.key);
  pending_.push_back(record);
  return load_pending(kPrefetchAhead);
}

// Loads the oldest pending writes until only `left` are pending.
Status Recovery::load_pending(std::size_t left) {
  for (; pending_.size() > left; pending_.pop_front()) {
    if (Status status = load(pending_.front()); !status.ok()) return status;
  }
  return {};
}

Status Recovery::batch_session(const SessionEntry& entry) { return sessions_->restore(entry, clock_->monotonic_us()); }

Status Recovery::access_table(std::string_view table) {
  Result<AccessTable> decoded = decode_table(table);
  if (decoded.ok()) access_ = std::move(*decoded);
  return decoded.status();
}

Status Recovery::batch_access(std::string_view change) {
  const Result<AccessChange> decoded = decode_change(change);
  if (decoded.ok()) access_.apply(*decoded);
  return decoded.status();
}

// The hash is not compared here. The checkpoint is fuzzy, so only the end of the replay is a state that the database
// ever had.
Status Recovery::batch_end(Hash128) { return load_pending(0); }

Status Recovery::finish(const RecoveredPosition& position) {
  if (!in_batches_) engine_->clear_dirty();
  raise_floor(position.tombstone_floor);
  if (state_hash_with(engine_->state_hash(), access_.hash()) == position.state_hash) {
    engine_->prepare();
    return {};
  }
  return Status(StatusCode::data_loss, "the state after batch " + std::to_string(position.batch) +
                                           " does not have the hash that the log recorded; restore from a backup");
}

}  // namespace kilokv::server
