#include "server/offline/backup_verifier.hpp"

#include <string_view>
#include <unordered_map>

#include "engine/state_sum.hpp"
#include "server/core/access/access.hpp"
#include "server/core/checkpoint/recovery.hpp"
#include "server/core/options.hpp"
#include "server/core/sessions/session_table.hpp"
#include "server/core/threads.hpp"
#include "server/offline/frame_file.hpp"
#include "server/offline/loader.hpp"

namespace kilokv::server::offline {
namespace {

using engine::StateSum;

Status lost(const std::string& what) { return {StatusCode::data_loss, what}; }

// What counts of a record.
struct Written {
  Version version = 0;
  bool is_tombstone = false;
  Hash128 share;
};

Written written_of(const StateSum& sum, const StoredRecord& record) {
  return {record.version, record.type == ValueType::absent,
          sum.share(record.key, record.version, record.type, record.integer, record.bytes, record.expires_us)};
}

// Sessions, users and roles are those of a start. The engine of the recovery stays empty.
class WritesOfTheLog final : public Recovery {
 public:
  WritesOfTheLog(const Clock* clock, SessionTable* sessions)
      : Recovery(clock, create_loading_engine, sessions, nullptr) {}  // no limit of the memory

  Status state_record(const StoredRecord&) override { return {}; }
  // The last write of a key is the newest one.
  Status batch_write(const StoredRecord& record) override {
    newest_[std::string(record.key)] = written_of(StateSum(secret()), record);
    return {};
  }

  std::unordered_map<std::string, Written>& newest() { return newest_; }

 private:
  std::unordered_map<std::string, Written> newest_;
};

// Adds up the records of the state.
class Total {
 public:
  Total(const engine::KeyHashSecret& secret, Version tombstone_floor) : sum_(secret), floor_(tombstone_floor) {}

  void add(const StoredRecord& record) { add(written_of(sum_, record)); }
  void add(const Written& written) {
    if (written.is_tombstone && written.version <= floor_) return;
    sum_.add(written.share);
    ++(written.is_tombstone ? tombstones_ : records_);
  }

  Hash128 hash() const { return sum_.hash(); }
  std::uint64_t records() const { return records_; }
  std::uint64_t tombstones() const { return tombstones_; }

 private:
  StateSum sum_;
  const Version floor_;
  std::uint64_t records_ = 0, tombstones_ = 0;
};

}  // namespace

struct BackupVerifier::Parts {
  // Reads the whole file, and adds the records of the state that the log does not replace. A write of the log that is
  // older than the record of the state leaves log.newest().
  Status add_state(const std::string& path, Total* total);

  SystemClock clock;
  SessionTable sessions{session_limits(DatabaseOptions{})};
  WritesOfTheLog log{&clock, &sessions};
};

Status BackupVerifier::Parts::add_state(const std::string& path, Total* total) {
  FrameFile file(path);
  if (Status status = file.open(); !status.ok()) return status;
  storage::FrameChain chain;
  storage::Frame frame;
  StoredRecord record;
  bool has_ended = false;
  for (;;) {
    const Result<bool> has_more = file.next(&frame);
    if (!has_more.ok()) return has_more.status();
    if (!*has_more) break;
    if (Status status = chain.check(frame); !status.ok()) return status;
    has_ended = frame.kind == storage::FrameKind::end;
    if (frame.kind != storage::FrameKind::state) continue;
    Status status = storage::each_entry(frame.payload, [&](std::string_view key, std::string_view value) -> Status {
      record.key = key;
      if (Status decoded = storage::decode_state(value, &record); !decoded.ok()) return decoded;
      const auto written = log.newest().find(std::string(key));
      if (written != log.newest().end()) {
        if (written->second.version >= record.version) return {};
        log.newest().erase(written);
      }
      total->add(record);
      return {};
    });
    if (!status.ok()) return status;
  }
  return has_ended ? Status() : lost(path + " has lost its end");
}

BackupVerifier::BackupVerifier() : parts_(std::make_unique<Parts>()) {}
BackupVerifier::~BackupVerifier() = default;

RecoveryVisitor* BackupVerifier::visitor() { return &parts_->log; }

Status BackupVerifier::finish(const std::string& path, const RecoveredPosition& position, Summary* summary) {
  WritesOfTheLog& log = parts_->log;
  Total total(log.secret(), position.tombstone_floor);
  if (Status status = parts_->add_state(path, &total); !status.ok()) return status;
  for (const auto& [key, written] : log.newest()) total.add(written);
  const AccessTable access = log.take_access();
  if (state_hash_with(total.hash(), access.hash()) != position.state_hash) {
    return lost("the state of the backup, at batch " + std::to_string(position.batch) +
                ", does not have the hash that the log recorded");
  }
  fill_position(position, summary);
  summary->records = total.records();
  summary->tombstones = total.tombstones();
  summary->sessions = parts_->sessions.count();
  summary->users = access.users().size();
  summary->complete = true;
  return {};
}

}  // namespace kilokv::server::offline
