// The answers of calls that run no transaction: Scan, ListParked and Status.
#include "server/service/encode.hpp"

namespace kilokv::server {
namespace {

v1::ServerSection::State state_of(DatabaseStatus::State state) {
  switch (state) {
    case DatabaseStatus::State::recovering: return v1::ServerSection::STATE_RECOVERING;
    case DatabaseStatus::State::ready: return v1::ServerSection::STATE_READY;
    case DatabaseStatus::State::draining: return v1::ServerSection::STATE_DRAINING;
    case DatabaseStatus::State::stopped: return v1::ServerSection::STATE_STOPPED;
  }
  return v1::ServerSection::STATE_UNSPECIFIED;
}

void fill_parked(const ParkedTransaction& parked, v1::ParkedTransaction* message) {
  message->set_id(parked.id);
  if (parked.session) message->set_session(parked.session->bytes.data(), kShownSessionBytes);
  message->set_request(parked.request);
  message->set_index(parked.index);
  message->set_guard(parked.guard);
  message->set_guard_key(parked.guard_key);
  message->set_admitted_batch(parked.admitted_batch);
  message->set_deadline_us(parked.deadline_us);
  message->set_since_us(parked.since_us);
  message->set_client(parked.client);
}

void fill_positions(const DatabaseStatus& status, v1::PositionSection* section) {
  section->set_executed_batch(status.executed_batch);
  section->set_durable_batch(status.durable_batch);
  section->set_checkpoint_batch(status.checkpoint_batch);
  section->set_next_version(status.next_version);
  section->set_state_hash(&status.state_hash, sizeof(status.state_hash));
}

void fill_counts(const DatabaseStatus& status, v1::CountSection* section) {
  section->set_batches(status.batches);
  section->set_transactions(status.transactions);
  section->set_committed(status.committed);
  section->set_guard_failed(status.guard_failed);
  section->set_wait_expired(status.wait_expired);
  section->set_overflow(status.overflow);
  section->set_type_mismatch(status.type_mismatch);
  section->set_refused(status.refused);
}

void fill_table(const DatabaseStatus& status, v1::TableSection* section) {
  const engine::EngineStats& engine = status.engine;
  section->set_expiring(engine.expiring);
  section->set_expired(status.expired);
  section->set_expiry_lag_us(static_cast<std::uint64_t>(status.expiry_lag_us));
  section->set_records(engine.records);
  section->set_tombstones(engine.tombstones);
  section->set_table_slots(engine.table_slots);
  section->set_table_memory_bytes(engine.memory_bytes);
}

void fill_log(const DatabaseStatus& status, v1::LogSection* section) {
  const LogUsage& log = status.log;
  section->set_log_kept_us(static_cast<std::uint64_t>(status.log_kept_us));
  section->set_first_log_batch(log.first_batch);
  section->set_log_bytes(log.log_bytes);
  section->set_log_reserved_bytes(log.reserved_bytes);
  section->set_disk_free_bytes(log.free_bytes);
  section->set_archive_batch(log.archive.batch);
  section->set_archive_lag_bytes(log.archive.lag_bytes);
  section->set_archive_ended(log.archive.ended ? 1 : 0);
}

void fill_device(const DatabaseStatus& status, v1::DeviceSection* section) {
  section->set_device(status.device.name);
  section->set_device_model(status.device.model);
  section->set_device_reason(status.device.reason);
  section->set_batches_serial(status.batches_serial);
  section->set_batches_parallel(status.batches_parallel);
  section->set_batches_on_device(status.batches_on_device);
}

}  // namespace

void fill_page(const ScanPage& page, v1::ScanResponse* message) {
  message->set_boundary(page.boundary);
  message->set_boundary_version(page.boundary_version);
  message->set_batch_time_us(page.batch_time_us);
  message->set_more(page.more);
  message->set_next_from(page.next_from);
  message->set_next_to(page.next_to);
  message->set_reverse(page.reverse);
  if (page.reader != 0) message->set_reader(&page.reader, sizeof page.reader);
  message->mutable_pairs()->Reserve(static_cast<int>(page.pairs.size()));
  for (const ScanPage::Pair& pair : page.pairs) {
    const ReadValue value{pair.key, pair.type, pair.integer, pair.bytes, pair.version};
    v1::Read* const read = message->add_pairs();
    fill_read(value, read);
    if (pair.expires_us != 0) read->set_expires_at_us(pair.expires_us);
  }
}

void fill_list(const ParkedPage& page, std::uint64_t message_bytes_max, v1::ListParkedResponse* message) {
  std::uint64_t bytes = kMessageBytesBound;
  message->set_more(page.more);
  for (const ParkedTransaction& one : page.parked) {
    bytes += kTransactionBytesBound + one.guard_key.size() + one.client.size();
    if (bytes > message_bytes_max && message->parked_size() > 0) return message->set_more(true);
    fill_parked(one, message->add_parked());
  }
}

void add_text(const std::string& name, const std::string& text,
              google::protobuf::RepeatedPtrField<v1::NamedText>* texts) {
  v1::NamedText* entry = texts->Add();
  entry->set_name(name);
  entry->set_text(text);
}

void fill_status(const DatabaseStatus& status, v1::StatusResponse* message) {
  message->mutable_server()->set_state(state_of(status.state));
  message->mutable_server()->set_recovery_seconds(status.recovery_seconds);
  const auto& incarnation = status.incarnation.id;
  message->mutable_server()->set_incarnation(incarnation.data(), incarnation.size());
  fill_positions(status, message->mutable_position());
  fill_counts(status, message->mutable_counts());
  message->mutable_queue()->set_queued_transactions(status.queued_transactions);
  message->mutable_queue()->set_queued_bytes(status.queued_bytes);
  message->mutable_parked()->set_parked(status.parked);
  message->mutable_parked()->set_parked_bytes(status.parked_bytes);
  message->mutable_sessions()->set_sessions(status.sessions);
  message->mutable_uploads()->set_uploads(status.uploads);
  message->mutable_uploads()->set_uploads_bytes(status.uploads_bytes);
  fill_table(status, message->mutable_table());
  fill_log(status, message->mutable_log());
  fill_device(status, message->mutable_device());
  message->mutable_checks()->set_shadow_batches(status.shadow_batches);
  message->mutable_checks()->set_shadow_skipped(status.shadow_skipped);
  add_text("strategy_choice", status.engine.strategy_choice, message->mutable_details());
  add_text("validator_choice", status.engine.validator_choice, message->mutable_details());
}

}  // namespace kilokv::server
