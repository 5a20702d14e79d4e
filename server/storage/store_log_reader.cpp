#include "server/storage/store_log_reader.hpp"

#include <string>

namespace kilokv::server::storage {
namespace {

// Passes writes on, and nothing else. A write that is not wanted ends the visit with a status that nobody sees.
class Writes final : public RecoveryVisitor {
 public:
  explicit Writes(const std::function<bool(const StoredRecord&)>& visit) : visit_(visit) {}

  Status identity(const DatabaseIdentity&) override { return {}; }
  Status state_record(const StoredRecord&) override { return {}; }
  Status session(const StoredSession&) override { return {}; }
  Status access_table(std::string_view) override { return {}; }
  Status batch_begin(const engine::BatchHeader&, Version) override { return {}; }
  Status batch_write(const StoredRecord& record) override {
    return visit_(record) ? Status() : Status(StatusCode::cancelled, "enough");
  }
  Status batch_session(const SessionEntry&) override { return {}; }
  Status batch_access(std::string_view) override { return {}; }
  Status batch_end(Hash128) override { return {}; }

 private:
  const std::function<bool(const StoredRecord&)>& visit_;
};

}  // namespace

// A record before the first one that is kept may still be there, because files are removed as a whole.
Result<bool> StoreLogReader::read(BatchNumber batch) {
  record_.reset();
  bytes_.Reset();
  const BatchNumber first = first_batch();
  if (first == 0 || batch < first) return false;
  const rocksdb::Status found =
      store_->db()->Get(rocksdb::ReadOptions(), store_->family(Family::log), ordered_key(batch), &bytes_);
  if (found.IsNotFound()) return false;
  const std::string doing = "reading batch " + std::to_string(batch) + " of the log";
  if (!found.ok()) return store_->status_of(found, doing);
  Result<RecordView> record = RecordView::parse({bytes_.data(), bytes_.size()});
  if (!record.ok()) {
    return Status(record.status().code(), record.status().reason(), doing + ": " + record.status().message());
  }
  record_ = *record;
  batch_ = {record_->header(), record_->next_version(), record_->expired(), bytes_.size()};
  return true;
}

void StoreLogReader::visit(const std::function<bool(const StoredRecord&)>& visit) const {
  Writes writes(visit);
  static_cast<void>(record_->visit(&writes));
}

}  // namespace kilokv::server::storage
