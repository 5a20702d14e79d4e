// The lines about the database and its storage.
#include "server/event_log.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/test_folder.hpp"
#include "tests/unit/service/log_lines.hpp"

namespace kilokv::server {
namespace {

constexpr engine::KeyHashSecret kSecret{3, 4};

class EventLogTest : public ::testing::Test {
 protected:
  // The events of a log of its own, and what it wrote.
  DatabaseEvents events_of(EventLog* log) {
    DatabaseEvents events;
    log->add_to(&events);
    log->set_secret(kSecret);
    return events;
  }
  static SlowTransaction slow() {
    SlowTransaction slow;
    slow.reason = SlowReason::waiting;
    slow.total_us = 2000000;
    slow.waited_us = 1999000;
    slow.queued_us = 1000;
    slow.client = "user:alice";
    slow.session = SessionId();
    slow.session->bytes.fill(0xAB);
    slow.request = 7;
    slow.outcome = engine::Outcome::committed;
    slow.batch = 5;
    slow.admitted_batch = 3;
    slow.guard = 1;
    slow.guard_key = "account/7";
    slow.trace = *parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    return slow;
  }

  const kilokv::test::TestFolder folder_;
  test::LogLines lines_{spdlog::level::trace};
};

TEST_F(EventLogTest, ASlowTransactionHasItsReasonAndItsTrace) {
  EventLog log(LogKeys::full, folder_.path("data"));
  events_of(&log).transaction_slow(slow(), 4);
  EXPECT_EQ(
      lines_.take(),
      "info kilokvd slow transaction reason=waiting total_us=2000000 queued_us=1000 waited_us=1999000 execution_us=0 "
      "sync_us=0 answer_us=0 client=\"user:alice\" session=abababab request=7 guard=1 key=\"account/7\" index=0 "
      "transactions=1 outcome=COMMITTED batch=5 admitted_batch=3 batch_transactions=0 reads=0 "
      "trace=0af7651916cd43dd8448eb211c80319c span=b7ad6b7169203331 left_out=4\n");
  SlowTransaction for_a_time = slow();
  for_a_time.guard_key.clear();
  events_of(&log).transaction_slow(for_a_time, 0);
  EXPECT_NE(lines_.take().find(" guard=1 index="), std::string::npos);
  SlowTransaction other = slow();
  other.reason = SlowReason::sync;
  other.guard = engine::kNone;
  other.session.reset();
  other.trace = {};
  events_of(&log).transaction_slow(other, 0);
  const std::string line = lines_.take();
  EXPECT_TRUE(line.starts_with("warning kilokvd slow transaction reason=sync ")) << line;
  for (const char* absent : {"session=", "request=", "guard=", "key=", "trace="}) {
    EXPECT_EQ(line.find(absent), std::string::npos) << absent;
  }
}

TEST_F(EventLogTest, KeysAreWrittenAsTheSettingSays) {
  for (const auto& [keys, expected] : {std::pair(LogKeys::hash, " key=" + key_hash_text("account/7", kSecret) + ' '),
                                       std::pair(LogKeys::none, std::string(" guard=1 index=0"))}) {
    EventLog log(keys, folder_.path("data"));
    const DatabaseEvents events = events_of(&log);
    events.transaction_slow(slow(), 0);
    ParkedReport parked;
    parked.key = "account/7";
    events.transaction_parked(parked);
    const std::string written = lines_.take();
    EXPECT_NE(written.find(expected), std::string::npos) << written;
    EXPECT_EQ(written.find("account"), std::string::npos) << written;
  }
}

TEST_F(EventLogTest, AWrongBatchGoesWhereItsKeysMayGo) {
  const Status difference(StatusCode::internal, "table, key secret-key: expected 5");
  {
    EventLog log(LogKeys::full, folder_.path(""));
    events_of(&log).shadow_mismatch(6, difference, "{\"key\": \"secret-key\"}\n");
    const std::string written = lines_.take();
    EXPECT_NE(written.find("batch=6 difference=\"table, key secret-key: expected 5\"\n{\"key\": \"secret-key\"}\n"),
              std::string::npos)
        << written;
  }
  EventLog log(LogKeys::hash, folder_.path(""));
  events_of(&log).shadow_mismatch(6, difference, "{\"key\": \"secret-key\"}\n");
  const std::string written = lines_.take();
  EXPECT_EQ(written.find("secret-key"), std::string::npos) << written;
  const std::string path = folder_.path("") + "/wrong-batch-6.txt";
  EXPECT_NE(written.find("batch_file=\"" + path + '"'), std::string::npos) << written;
  std::ifstream file(path);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(content, "table, key secret-key: expected 5\n{\"key\": \"secret-key\"}\n");
  struct stat found = {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  // A file that is there already is not overwritten.
  events_of(&log).shadow_mismatch(6, difference, "other");
  EXPECT_NE(lines_.take().find("cannot write it to a file batch=6"), std::string::npos);
}

TEST_F(EventLogTest, ARecoveryIsToldOfFromTimeToTime) {
  RecoveryProgress progress;
  progress.records = 4096;
  progress.records_most = 9000;
  EventLog quick(LogKeys::hash, folder_.path("data"), std::chrono::hours(1));
  events_of(&quick).recovering(progress);
  EXPECT_EQ(lines_.take(), "debug kilokvd recovers step=checkpoint records=4096 records_most=9000 batch=0\n");
  EventLog slow(LogKeys::hash, folder_.path("data"), std::chrono::seconds(0));
  progress.batch = 17;
  events_of(&slow).recovering(progress);
  EXPECT_EQ(lines_.take(), "info kilokvd recovers step=log records=4096 records_most=9000 batch=17\n");
}

TEST_F(EventLogTest, EventsThatWereThereGoOn) {
  EventLog log(LogKeys::hash, folder_.path("data"));
  int calls = 0;
  DatabaseEvents events;
  events.recovering = [&calls](const RecoveryProgress&) { ++calls; };
  events.shadow_mismatch = [&calls](BatchNumber, const Status&, const std::string&) { ++calls; };
  log.add_to(&events);
  events.recovering({});
  events.shadow_mismatch(1, Status(StatusCode::internal, "x"), "y");
  EXPECT_EQ(calls, 2);
  StorageOptions storage;
  storage.on_created = [&calls](const std::string&) { ++calls; };
  log.add_to(&storage);
  lines_.take();
  storage.on_created("some\nplace");
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(lines_.take().starts_with("warning kilokvd has made a new, empty database data_dir=\"some\\nplace\" "));
}

TEST_F(EventLogTest, ADiskWithRoomAgainIsTold) {
  EventLog log(LogKeys::hash, folder_.path("data"));
  StorageOptions storage;
  log.add_to(&storage);
  const DatabaseEvents events = events_of(&log);
  const CheckpointReport report{.batch = 9, .records = 5, .trimmed_bytes = 100};
  events.checkpoint_made(report);
  EXPECT_EQ(lines_.take(),
            "info kilokvd made a checkpoint batch=9 records=5 removed=0 sessions=0 seconds=0.000\n"
            "info kilokvd trimmed the log first_batch=0 trimmed_bytes=100 kept_bytes=0\n");
  storage.on_checkpoint_put_off(Status(StatusCode::internal, "full"));
  EXPECT_EQ(lines_.take(), "warning kilokvd makes no checkpoints until the disk has room reason=\"full\"\n");
  events.checkpoint_made(report);
  EXPECT_TRUE(lines_.take().starts_with("info kilokvd makes checkpoints again"));
  events.checkpoint_made(report);
  EXPECT_TRUE(lines_.take().starts_with("info kilokvd made a checkpoint"));
}

TEST_F(EventLogTest, TroubleOfTheStorageIsTold) {
  EventLog log(LogKeys::hash, folder_.path("data"));
  StorageOptions storage;
  log.add_to(&storage);
  storage.on_archive_problem("its disk\nis full", false);
  storage.on_archive_problem("it fell back", true);
  storage.on_open_to_others("some path");
  EXPECT_EQ(
      lines_.take(),
      "error kilokvd archive has a problem reason=\"its disk\\nis full\"\n"
      "error kilokvd archive ended reason=\"it fell back\"\n"
      "warning kilokvd leaves a path open to others path=\"some path\" hint=\"it belongs to another user, or has other "
      "files, too: give the database a folder of its own, with the mode 0700\"\n");
}

TEST_F(EventLogTest, SlowSyncsAreCountedWithinASecond) {
  EventLog log(LogKeys::hash, folder_.path("data"));
  const DatabaseEvents events = events_of(&log);
  for (BatchNumber batch = 1; batch <= 50; ++batch) events.sync_slow({300000, batch, 1});
  EXPECT_EQ(lines_.take(),
            "warning kilokvd had slow syncs of the disk times=1 last_seconds=0.300 last_batch=1 batches=1\n");
}

TEST_F(EventLogTest, ASessionHasItsBeginAndNoMore) {
  EventLog log(LogKeys::hash, folder_.path("data"));
  const DatabaseEvents events = events_of(&log);
  SessionEntry entry;
  entry.identity.session.emplace().bytes.fill(0xAB);
  entry.user = "alice";
  events.session_changed(entry);
  EXPECT_EQ(lines_.take(), "debug kilokvd opened a session session=abababab user=\"alice\"\n");
  entry.user.clear();
  entry.kind = SessionEntry::Kind::attached;
  entry.identity.holder = 2;
  events.session_changed(entry);
  EXPECT_EQ(lines_.take(), "debug kilokvd gave a new holder to a session session=abababab holder=2\n");
  entry.kind = SessionEntry::Kind::closed;
  events.session_changed(entry);
  EXPECT_EQ(lines_.take(), "debug kilokvd closed a session session=abababab\n");
}

TEST_F(EventLogTest, SingleRequestsAreOnlyForTheLevelTrace) {
  EventLog log(LogKeys::hash, folder_.path("data"));
  const DatabaseEvents events = events_of(&log);
  EXPECT_TRUE(events.tells_requests());
  spdlog::default_logger()->set_level(spdlog::level::debug);
  EXPECT_FALSE(events.tells_requests());
}

}  // namespace
}  // namespace kilokv::server
