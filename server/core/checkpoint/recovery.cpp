#include "server/core/checkpoint/recovery.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "server/core/access/access.hpp"
#include "server/core/access/access_record.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kPrefetchAhead = 16;  // writes
constexpr DurationUs kTellEveryUs = 1000000;
constexpr std::uint64_t kRecordsPerLook = 4096;                    // at the clock: about a millisecond
constexpr std::uint64_t kUnknownRecords = std::uint64_t{1} << 40;  // a log that does not know how many it has says more

// The memory of so much data, once it is loaded. The table counts at its highest load, so that a database that was
// within the limit always starts again.
std::uint64_t bytes_of(const NewData& data) {
  constexpr std::uint64_t kSlotBytes = 50;
  return data.records * kSlotBytes + data.bytes;
}

}  // namespace

Recovery::Recovery(const Clock* clock, EngineFactory create_engine, SessionTable* sessions, const DataBudget* data,
                   std::function<void(const RecoveryProgress&)> on_progress)
    : clock_(clock),
      create_engine_(std::move(create_engine)),
      sessions_(sessions),
      data_(data),
      on_progress_(std::move(on_progress)) {}

void Recovery::tell_progress() {
  if (!on_progress_) return;
  const TimeUs now = clock_->monotonic_us();
  if (now < next_told_us_) return;
  next_told_us_ = now + kTellEveryUs;
  on_progress_(progress_);
}

void Recovery::loaded_one() {
  if (++progress_.records % kRecordsPerLook == 0) tell_progress();
}

Status Recovery::identity(const DatabaseIdentity& identity) {
  secret_ = identity.key_secret;
  incarnation_ = identity.incarnation;
  auto engine = create_engine_(secret_);
  if (!engine.ok()) return engine.status();
  engine_ = std::move(*engine);
  return {};
}

Status Recovery::load(const StoredRecord& record) {
  largest_value_ = std::max<std::uint64_t>(largest_value_, record.bytes.size());
  return engine_->load(record.key, record.version, record.type, record.integer, record.bytes, record.expires_us);
}

void Recovery::raise_floor(Version floor) {
  if (floor > engine_->tombstone_floor()) {
    engine_->drop_tombstones(floor, [this](std::string_view key) { dropped_.emplace_back(key); });
  }
}

// A long value takes at most a quarter more than its bytes, and a short one at most 40 bytes more. Each key may expire.
bool Recovery::must_count(const StateSize& most) {
  progress_.records_most = most.records < kUnknownRecords ? most.records : 0;
  if (data_ == nullptr) return false;
  constexpr std::uint64_t kKey = 24, kValue = 40;
  const NewData bound{most.records, most.key_bytes + most.value_bytes / 4 * 5 +
                                        most.records * (kKey + kValue + engine::expiry_bytes())};
  return !data_->check_stored(bytes_of(bound)).ok();
}

void Recovery::count_record(const StoredRecord& record) {
  ++counted_.records;
  counted_.bytes += engine::new_key_bytes(record.key.size());
  if (record.type == ValueType::bytes) counted_.bytes += engine::new_value_bytes(record.bytes.size());
  if (record.expires_us != 0) counted_.bytes += engine::expiry_bytes();
  progress_.counting = true;
  loaded_one();
}

// A checkpoint is fuzzy: it may hold keys that were deleted while it was made, beside values that grew. So more of the
// memory may be needed for a moment. finish() checks what is left.
Status Recovery::counted() {
  progress_ = {.records_most = progress_.records_most};
  return data_->check_replay(bytes_of(counted_));
}

Status Recovery::state_record(const StoredRecord& record) {
  loaded_one();
  return load(record);
}

Status Recovery::session(const StoredSession& session) { return sessions_->restore(session, clock_->monotonic_us()); }

// With a limit of the memory, stored results keep to their part of it, also if it was larger when they were stored. The
// log learns of an acknowledgement with the results of a later request. So the replay may hold results that were freed
// before, and at its end as many as the log can have.
Status Recovery::check_sessions(std::uint64_t log_bytes) const {
  return data_ == nullptr || data_->data_max() == 0 ? Status() : sessions_->check_restored(log_bytes);
}

Status Recovery::batch_begin(const engine::BatchHeader& header, Version tombstone_floor) {
  progress_.batch = header.number;
  tell_progress();
  is_restored_ = header.number <= incarnation_.after_batch;
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

Status Recovery::batch_session(const SessionEntry& entry) {
  return sessions_->restore(entry, clock_->monotonic_us(), is_restored_);
}

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
Status Recovery::batch_end(Hash128) {
  if (Status status = load_pending(0); !status.ok() || data_ == nullptr) return status;
  return data_->check_replay(engine_->memory().sum());
}

Status Recovery::finish(const RecoveredPosition& position) {
  if (!in_batches_) engine_->clear_dirty();
  raise_floor(position.tombstone_floor);
  if (Status status = check_sessions(position.log_bytes_since_checkpoint); !status.ok()) return status;
  if (data_ != nullptr) {
    const engine::EngineMemory held = engine_->memory();
    const NewData loaded{held.records, held.key_bytes + held.index_bytes + held.value_bytes};
    if (Status status = data_->check_stored(bytes_of(loaded)); !status.ok()) return status;
  }
  if (state_hash_with(engine_->state_hash(), access_.hash()) == position.state_hash) {
    engine_->prepare();
    return {};
  }
  return Status(StatusCode::data_loss, "the state after batch " + std::to_string(position.batch) +
                                           " does not have the hash that the log recorded; restore from a backup");
}

}  // namespace kilokv::server
