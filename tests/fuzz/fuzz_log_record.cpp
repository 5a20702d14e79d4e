// Log records (server/storage/log_record.cpp). The input is a record without its last four bytes: the target appends
// the checksum, because no mutation would find it. A record that can be parsed is what encode_record can have written:
// its parts encode to a record with the same parts.
#include "server/storage/log_record.hpp"

#include <deque>
#include <tuple>
#include <vector>

#include "server/storage/crc32c.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;

// Takes a record apart.
class Parts final : public RecoveryVisitor {
 public:
  explicit Parts(const storage::RecordView& view) {
    KILOKV_CHECK(view.visit(this).ok());
    KILOKV_CHECK(writes.size() == view.writes() && ended_);
    for (const Version version : versions_) {
      KILOKV_CHECK(version >= header.first_version && version < view.next_version());
    }
  }

  Status identity(const DatabaseIdentity&) override { KILOKV_CHECK(false); }
  Status state_record(const StoredRecord&) override { KILOKV_CHECK(false); }
  Status session(const StoredSession&) override { KILOKV_CHECK(false); }
  Status batch_begin(const engine::BatchHeader& begun, Version floor) override {
    header = begun;
    tombstone_floor = floor;
    return {};
  }
  Status batch_write(const StoredRecord& record) override {
    const Version rank = record.version - header.first_version;
    KILOKV_CHECK(rank <= UINT32_MAX && !record.key.empty());
    versions_.push_back(record.version);
    KILOKV_CHECK(record.expires_us >= 0);
    if (record.expires_us != 0) {
      writes.expiry_write.push_back(static_cast<std::uint32_t>(writes.rank.size()));
      writes.expires_us.push_back(record.expires_us);
    }
    writes.rank.push_back(static_cast<std::uint32_t>(rank));
    writes.type.push_back(static_cast<std::uint8_t>(record.type));
    writes.word.push_back(record.integer);
    writes.key_bytes.insert(writes.key_bytes.end(), record.key.begin(), record.key.end());
    writes.key_end.push_back(static_cast<std::uint32_t>(writes.key_bytes.size()));
    if (record.type != ValueType::bytes) return {};
    writes.value_bytes.insert(writes.value_bytes.end(), record.bytes.begin(), record.bytes.end());
    writes.value_end.push_back(static_cast<std::uint32_t>(writes.value_bytes.size()));
    return {};
  }
  Status batch_session(const SessionEntry& entry) override {
    entries.push_back(entry);
    return {};
  }
  Status access_table(std::string_view) override { return {}; }
  Status batch_access(std::string_view change) override {
    access.emplace_back(change);
    return {};
  }
  Status batch_end(Hash128) override {
    ended_ = true;
    return {};
  }

  engine::BatchHeader header;
  Version tombstone_floor = 0;
  engine::WriteColumns writes;
  std::vector<SessionEntry> entries;
  std::vector<std::string> access;

 private:
  std::vector<Version> versions_;
  bool ended_ = false;
};

std::string encode(const storage::RecordView& view, const Parts& parts) {
  const LogRecord record{.header = parts.header,
                         .next_version = view.next_version(),
                         .tombstone_floor = parts.tombstone_floor,
                         .transactions = view.transactions(),
                         .state_hash = view.state_hash(),
                         .writes = &parts.writes,
                         .sessions = parts.entries,
                         .access = parts.access,
                         .expired = view.expired()};
  std::string bytes;
  storage::encode_record(record, view.previous_crc(), &bytes);
  return bytes;
}

void check(std::string_view bytes) {
  const Result<storage::RecordView> view = storage::RecordView::parse(bytes);
  if (!view.ok()) return;
  const std::string once = encode(*view, Parts(*view));
  // A column may be wider than it has to be, so the first encoding may differ from the input. The next may not.
  const Result<storage::RecordView> again = storage::RecordView::parse(once);
  KILOKV_CHECK(again.ok());
  const Parts parts(*again);
  KILOKV_CHECK(encode(*again, parts) == once);
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  std::string bytes(fuzz::text_of(data, size));
  fuzz::check(bytes);
  server::storage::put(&bytes, server::storage::crc32c(bytes));
  fuzz::check(bytes);
  return 0;
}
