#include "server/storage/store_log_reader.hpp"

#include <string>

namespace kilokv::server::storage {
namespace {

constexpr std::uint64_t kAtHandBytes = std::uint64_t{8} << 20;

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
  at_ = nullptr;
  const BatchNumber first = first_batch();
  if (first == 0 || batch < first) return false;
  bool found = at_hand_.contains(batch);
  if (!found) {
    if (Status status = load(batch, &found); !status.ok()) return status;
  }
  if (found) at_ = &at_hand_.at(batch);
  return found;
}

Status StoreLogReader::load(BatchNumber batch, bool* found) {
  Record record;
  const rocksdb::Status got =
      store_->db()->Get(rocksdb::ReadOptions(), store_->family(Family::log), ordered_key(batch), &record.bytes);
  *found = got.ok();
  if (got.IsNotFound()) return {};
  const std::string doing = "reading batch " + std::to_string(batch) + " of the log";
  if (!got.ok()) return store_->status_of(got, doing);
  const std::uint64_t bytes = record.bytes.size() + sizeof(Record);
  make_room(bytes);
  Record& kept = at_hand_.emplace(batch, std::move(record)).first->second;  // its bytes may move, its view may not
  order_.push_back(batch);
  at_hand_bytes_ += bytes;
  Result<RecordView> view = RecordView::parse({kept.bytes.data(), kept.bytes.size()});
  if (!view.ok()) {
    release();
    return Status(view.status().code(), view.status().reason(), doing + ": " + view.status().message());
  }
  kept.view = *view;
  kept.batch = {view->header(), view->next_version(), view->expired(), kept.bytes.size()};
  return {};
}

void StoreLogReader::make_room(std::uint64_t bytes) {
  for (; !order_.empty() && at_hand_bytes_ + bytes > kAtHandBytes; order_.pop_front()) {
    const auto oldest = at_hand_.find(order_.front());
    at_hand_bytes_ -= oldest->second.bytes.size() + sizeof(Record);
    at_hand_.erase(oldest);
  }
}

void StoreLogReader::release() {
  at_ = nullptr;
  at_hand_.clear();
  order_.clear();
  at_hand_bytes_ = 0;
}

void StoreLogReader::visit(const std::function<bool(const StoredRecord&)>& visit) const {
  Writes writes(visit);
  static_cast<void>(at_->view.visit(&writes));
}

}  // namespace kilokv::server::storage
