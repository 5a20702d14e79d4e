// The hash of a backup's state without a table: it is that of an engine that has loaded the same records.
#include "server/offline/backup_verifier.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "server/core/access/access.hpp"
#include "server/core/access/access_record.hpp"
#include "server/core/access/access_table.hpp"
#include "server/offline/loader.hpp"
#include "server/storage/backup_format.hpp"
#include "tests/support/test_folder.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::offline {
namespace {

using storage::FrameKind;

struct Record {
  std::string key;
  Version version = 0;
  ValueType type = ValueType::absent;
  std::int64_t integer = 0;
  std::string bytes;

  StoredRecord stored() const { return {key, version, type, integer, bytes}; }
};

// A state in a file, and batches after its checkpoint. A model engine loads both as a start does.
class StateAndLog {
 public:
  StateAndLog() {
    identity_.key_secret = {0x1234, 0x5678};
    model_ = std::move(*create_loading_engine(identity_.key_secret));
    EXPECT_TRUE(verifier_.visitor()->identity(identity_).ok());
  }

  void put_state(const Record& r) {
    state_[r.key] = r;
    load(r);
  }
  // The file has another record, and the model does not.
  void change_state(const Record& r) { state_[r.key] = r; }
  // A user whom a batch of the log makes.
  void put_user(const std::string& name) {
    AccessChange change;
    change.kind = AccessChange::Kind::put_user;
    change.user.name = name;
    ASSERT_TRUE(verifier_.visitor()->batch_access(encode_change(change)).ok());
    access_.apply(change);
  }
  // A batch whose record has this floor.
  void put_batch(Version floor, const std::vector<Record>& writes) {
    RecoveryVisitor* const visitor = verifier_.visitor();
    const engine::BatchHeader header = {.number = ++position_.batch, .time_us = 1, .first_version = 1};
    ASSERT_TRUE(visitor->batch_begin(header, floor).ok());
    drop(floor);
    for (const Record& r : writes) {
      ASSERT_TRUE(visitor->batch_write(r.stored()).ok());
      load(r);
    }
    ASSERT_TRUE(visitor->batch_end({}).ok());
    position_.tombstone_floor = floor;
  }
  void write_frames(std::size_t entries_of_a_frame = 3, bool has_end = true) {
    std::string file, payload;
    std::uint64_t index = 0;
    std::uint32_t crc = storage::encode_frame(FrameKind::header, index++, 0, "header", &file);
    std::size_t entries = 0;
    for (const auto& [key, r] : state_) {
      std::string value;
      storage::encode_state(r.stored(), &value);
      storage::put_entry(key, value, &payload);
      if (++entries % entries_of_a_frame != 0 && entries != state_.size()) continue;
      crc = storage::encode_frame(FrameKind::state, index++, crc, payload, &file);
      payload.clear();
    }
    crc = storage::encode_frame(FrameKind::log, index++, crc, "not looked at again", &file);
    if (has_end) storage::encode_frame(FrameKind::end, index, crc, "end", &file);
    storage::write_file(path_, file);
  }
  Status finish() {
    position_.state_hash = state_hash_with(model_->state_hash(), access_.hash());
    return verifier_.finish(path_, position_, &summary_);
  }
  void expect_equal() {
    const Status status = finish();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(summary_.records, model_->stats().records);
    EXPECT_EQ(summary_.tombstones, model_->stats().tombstones);
    EXPECT_EQ(summary_.users, access_.users().size());
    EXPECT_TRUE(summary_.complete);
  }
  const Summary& summary() const { return summary_; }
  const std::string& path() const { return path_; }

 private:
  void load(const Record& r) { ASSERT_TRUE(model_->load(r.key, r.version, r.type, r.integer, r.bytes).ok()); }
  void drop(Version floor) {
    if (floor > model_->tombstone_floor()) model_->drop_tombstones(floor, [](std::string_view) {});
  }

  test::TestFolder temporary_;
  const std::string path_ = temporary_.path("a.partial");
  DatabaseIdentity identity_;
  BackupVerifier verifier_;
  std::unique_ptr<engine::Engine> model_;
  std::map<std::string, Record> state_;
  AccessTable access_;
  RecoveredPosition position_;
  Summary summary_;
};

Record integer(const std::string& key, Version version, std::int64_t value) {
  return {key, version, ValueType::integer, value, ""};
}
Record bytes(const std::string& key, Version version, const std::string& value) {
  return {key, version, ValueType::bytes, 0, value};
}
Record tombstone(const std::string& key, Version version) { return {key, version, ValueType::absent, 0, ""}; }

TEST(BackupVerifierTest, AStateWithoutALog) {
  StateAndLog both;
  both.put_state(integer("a", 5, -7));
  both.put_state(bytes("b", 6, "value"));
  both.put_state(bytes("c", 6, ""));
  both.put_state(tombstone("d", 9));
  both.write_frames();
  both.expect_equal();
  EXPECT_EQ(both.summary().records, 3u);
  EXPECT_EQ(both.summary().tombstones, 1u);
}

TEST(BackupVerifierTest, UsersBelongToTheState) {
  StateAndLog both;
  both.put_state(integer("a", 5, 1));
  both.put_batch(0, {});
  both.put_user("anna");
  both.write_frames();
  both.expect_equal();
  EXPECT_EQ(both.summary().users, 1u);
}

TEST(BackupVerifierTest, AnEmptyDatabase) {
  StateAndLog both;
  both.write_frames();
  both.expect_equal();
}

TEST(BackupVerifierTest, TheLogReplacesOlderRecordsOfTheStateAndNotNewerOnes) {
  StateAndLog both;
  both.put_state(integer("older", 5, 1));
  both.put_state(integer("equal", 20, 2));
  both.put_state(bytes("newer", 31, "of a later batch"));
  both.put_state(integer("deleted", 7, 3));
  both.put_batch(0, {integer("older", 21, 4), integer("equal", 20, 2), integer("newer", 22, 5),
                     tombstone("deleted", 23), bytes("new", 24, "x")});
  both.put_batch(0, {bytes("newer", 31, "of a later batch"), integer("new", 32, 6)});
  both.write_frames();
  both.expect_equal();
  EXPECT_EQ(both.summary().records, 4u);
  EXPECT_EQ(both.summary().tombstones, 1u);
}

TEST(BackupVerifierTest, ARecordOfTheStateMayBeNewerThanTheWholeLog) {
  StateAndLog both;
  both.put_state(integer("a", 31, 1));
  both.put_batch(0, {tombstone("a", 22)});
  both.write_frames();
  both.expect_equal();
}

TEST(BackupVerifierTest, TheFloorDropsTombstones) {
  StateAndLog both;
  both.put_state(tombstone("of the state", 5));
  both.put_state(tombstone("that stays", 50));
  both.put_state(integer("deleted", 6, 1));
  both.put_batch(0, {tombstone("deleted", 20), tombstone("and written", 21)});
  both.put_batch(21, {integer("and written", 40, 1)});
  both.write_frames();
  both.expect_equal();
  EXPECT_EQ(both.summary().records, 1u);
  EXPECT_EQ(both.summary().tombstones, 1u);
}

// One transaction may write a key twice. Both writes have one version, and the later one counts.
TEST(BackupVerifierTest, TheLaterOfTwoWritesOfOneVersionCounts) {
  StateAndLog both;
  both.put_batch(0, {integer("a", 20, 1), integer("a", 20, 2)});
  both.write_frames();
  both.expect_equal();
}

TEST(BackupVerifierTest, RandomHistoriesAsAnEngineLoadsThem) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    StateAndLog one;
    const auto any = [&](std::uint32_t below) { return random() % below; };
    const auto record = [&](Version version) {
      const std::string key = "key " + std::to_string(any(40));
      if (any(3) == 0) return tombstone(key, version);
      return any(2) == 0 ? integer(key, version, any(9)) : bytes(key, version, std::string(any(20), 'v'));
    };
    // First all writes, so that the state may have any of them.
    std::vector<Record> writes;
    for (Version version = 1; version <= 200; ++version) writes.push_back(record(version));
    std::map<std::string, std::vector<Record>> of_keys;
    for (const Record& write : writes) of_keys[write.key].push_back(write);
    const Version covered = 100;
    for (const auto& [key, all] : of_keys) {
      std::size_t least = 0;
      while (least + 1 < all.size() && all[least + 1].version <= covered) ++least;
      const Record& chosen = all[least + any(static_cast<std::uint32_t>(all.size() - least))];
      if (chosen.version <= covered || any(2) == 0) one.put_state(chosen);
    }
    Version floor = 0;
    for (Version version = covered + 1; version <= 200; version += 10) {
      if (any(2) == 0) floor = std::max<Version>(floor, version - 1 - any(30));
      const auto begin = writes.begin() + static_cast<std::ptrdiff_t>(version - 1);
      one.put_batch(floor, {begin, begin + 10});
    }
    one.write_frames(1 + any(9));
    one.expect_equal();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(BackupVerifierTest, AnyOtherStateIsFound) {
  for (const Record& other : {integer("a", 5, 2), integer("a", 4, 1), tombstone("a", 5), bytes("a", 5, "1"),
                              tombstone("b", 7), integer("c", 21, 1), integer("d", 1, 1)}) {
    SCOPED_TRACE(other.key + " with version " + std::to_string(other.version));
    StateAndLog both;
    both.put_state(integer("a", 5, 1));
    both.put_state(tombstone("b", 6));
    both.put_batch(0, {integer("c", 20, 1)});
    both.change_state(other);
    both.write_frames();
    EXPECT_EQ(both.finish().code(), StatusCode::data_loss);
  }
}

TEST(BackupVerifierTest, AFileThatWasDamagedMeanwhileIsFound) {
  StateAndLog both;
  for (char key = 'a'; key < 'f'; ++key) both.put_state(integer(std::string(1, key), 5, 1));
  both.write_frames(1);
  const std::string content = storage::read_file(both.path());
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string damaged = content;
    damaged[at] ^= 1;
    storage::write_file(both.path(), damaged);
    EXPECT_EQ(both.finish().code(), StatusCode::data_loss) << "byte " << at;
  }
}

TEST(BackupVerifierTest, AFileWithoutItsEndIsFound) {
  StateAndLog both;
  both.put_state(integer("a", 5, 1));
  both.write_frames(1, false);
  EXPECT_EQ(both.finish().code(), StatusCode::data_loss);
}

}  // namespace
}  // namespace kilokv::server::offline
