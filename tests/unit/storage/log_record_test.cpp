#include "server/storage/log_record.hpp"

#include <gtest/gtest.h>

#include <random>

#include "server/storage/crc32c.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

std::vector<std::string> read_back(const std::string& bytes) {
  const Result<RecordView> view = RecordView::parse(bytes);
  EXPECT_TRUE(view.ok()) << view.status().message();
  Transcript transcript;
  if (view.ok()) {
    EXPECT_TRUE(view->visit(&transcript).ok());
  }
  return transcript.lines;
}

TEST(Crc32c, IsTheStandardOne) { EXPECT_EQ(crc32c("123456789"), 0xE3069283u); }

TEST(Crc32c, Continues) { EXPECT_EQ(crc32c("456789", crc32c("123")), 0xE3069283u); }

TEST(LogRecord, RoundTripOfEveryKind) {
  for (BatchNumber number = 1; number <= 20; ++number) {
    const Batch batch = sample_batch(number);
    std::string bytes;
    const std::uint32_t crc = encode_record(batch.record(), 42, &bytes);
    EXPECT_EQ(read_back(bytes), batch.lines());
    const Result<RecordView> view = RecordView::parse(bytes);
    EXPECT_EQ(view->crc(), crc);
    EXPECT_EQ(view->previous_crc(), 42u);
    EXPECT_EQ(view->next_version(), batch.next_version);
    EXPECT_EQ(view->transactions(), batch.transactions);
  }
}

TEST(LogRecord, ARecordWithoutWritesMayLeaveThemOut) {
  Batch batch(3);
  LogRecord record = batch.record();
  record.writes = nullptr;
  std::string bytes;
  encode_record(record, 0, &bytes);
  EXPECT_EQ(read_back(bytes), batch.lines());
}

TEST(LogRecord, RandomColumnsOfEveryWidth) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Batch batch(1 + random() % 1000000);
    const std::uint64_t writes = random() % 50;
    const int shift = static_cast<int>(random() % 64);
    std::uint32_t rank = 0;
    for (std::uint64_t i = 0; i < writes; ++i) {
      rank += static_cast<std::uint32_t>(random() % 20);
      const std::string key(1 + random() % 1024, static_cast<char>(random()));
      const auto value = static_cast<std::int64_t>(random()) >> shift;
      switch (random() % 3) {
        case 0: batch.write_integer(rank, key, value); break;
        case 1: batch.write_bytes(rank, key, std::string(random() % 100000, static_cast<char>(random()))); break;
        default: batch.erase(rank, key);
      }
      const bool is_delete = batch.writes.type.back() == static_cast<std::uint8_t>(ValueType::absent);
      if (!is_delete && random() % 3 == 0) batch.expire(1 + static_cast<TimeUs>(random() >> (1 + random() % 60)));
    }
    batch.expired = random() % 2 == 0;
    std::string bytes;
    encode_record(batch.record(), 0, &bytes);
    ASSERT_EQ(read_back(bytes), batch.lines());
  }
}

TEST(LogRecord, ExpiriesHaveAFlagAndAreChecked) {
  Batch batch(5);
  batch.write_integer(0, "plain", 1);
  batch.write_integer(1, "expires", 2);
  batch.expire(77);
  batch.erase(2, "gone");
  std::string bytes;
  encode_record(batch.record(), 1, &bytes);
  EXPECT_EQ(bytes[6], static_cast<char>(kHasExpiries));
  EXPECT_TRUE(RecordView::parse(bytes)->has_expiries());
  EXPECT_FALSE(RecordView::parse(bytes)->expired());
  EXPECT_EQ(read_back(bytes), batch.lines());
  const auto refused = [&](std::uint32_t write, TimeUs expires_us) {
    batch.writes.expiry_write[0] = write;
    batch.writes.expires_us[0] = expires_us;
    std::string wrong;
    encode_record(batch.record(), 1, &wrong);
    return RecordView::parse(wrong).status().message();
  };
  EXPECT_NE(refused(2, 77).find("a delete with an expiry"), std::string::npos);
  EXPECT_NE(refused(3, 77).find("an expiry of no write"), std::string::npos);
  EXPECT_NE(refused(0, 0).find("an expiry before all times"), std::string::npos);
  EXPECT_EQ(refused(0, kNever), "");
  batch.expired = true;
  batch.writes.expiry_write.clear(), batch.writes.expires_us.clear();
  bytes.clear();
  encode_record(batch.record(), 1, &bytes);
  EXPECT_TRUE(RecordView::parse(bytes)->expired());
  EXPECT_FALSE(RecordView::parse(bytes)->has_expiries());
}

TEST(LogRecord, ABankTransferCostsLittle) {
  Batch batch(1);
  batch.next_version = batch.header.first_version + 1024;
  std::mt19937_64 random(1);
  for (std::uint32_t rank = 0; rank < 1024; ++rank) {
    batch.write_integer(rank, "account-12345678", static_cast<std::int64_t>(random() % 2000));
    batch.write_integer(rank, "account-87654321", static_cast<std::int64_t>(random() % 2000));
  }
  std::string bytes;
  encode_record(batch.record(), 0, &bytes);
  EXPECT_LE(bytes.size() / 1024, 39u);
}

TEST(LogRecord, EveryFlippedBitAndEveryCutIsFound) {
  std::string bytes;
  encode_record(sample_batch(5).record(), 1, &bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ASSERT_EQ(RecordView::parse(damaged).status().code(), StatusCode::data_loss) << "byte " << i << " bit " << bit;
    }
    ASSERT_EQ(RecordView::parse(bytes.substr(0, i)).status().code(), StatusCode::data_loss) << "cut at " << i;
  }
}

TEST(LogRecord, ASessionEntryOfAnUnknownKindIsDataLoss) {
  for (const int kind : {0, 4, 255}) {
    Batch batch = sample_batch(5);
    batch.sessions.back().kind = static_cast<SessionEntry::Kind>(kind);
    std::string bytes;
    encode_record(batch.record(), 1, &bytes);
    EXPECT_EQ(RecordView::parse(bytes).status().code(), StatusCode::data_loss) << kind;
  }
}

// Older programs refuse a record with an attach by its flag, and must not take it for damage. So the flag is there
// exactly if there is such an entry.
TEST(LogRecord, AnAttachHasAFlag) {
  constexpr std::size_t kFlagsAt = 6;
  for (const BatchNumber number : {BatchNumber{3}, BatchNumber{4}, BatchNumber{5}, BatchNumber{12}}) {
    std::string bytes;
    encode_record(sample_batch(number).record(), 1, &bytes);
    EXPECT_EQ(bytes[kFlagsAt], (number % 3 == 0 ? kHasAccess : 0) | (number % 4 == 0 ? kHasAttach : 0)) << number;
    bytes.resize(bytes.size() - 4);
    bytes[kFlagsAt] = static_cast<char>(bytes[kFlagsAt] ^ kHasAttach);
    put(&bytes, crc32c(bytes));
    const Status status = RecordView::parse(bytes).status();
    EXPECT_EQ(status.code(), StatusCode::data_loss);
    EXPECT_EQ(status.message(), "log record: its flags contradict its session entries") << number;
  }
}

TEST(LogRecord, AnAttachWithoutAHolderIsDataLoss) {
  Batch batch = sample_batch(4);
  batch.sessions.back().identity.holder = 0;
  std::string bytes;
  encode_record(batch.record(), 1, &bytes);
  EXPECT_EQ(RecordView::parse(bytes).status().code(), StatusCode::data_loss);
}

// With the checksum made right again, the shape alone has to be checked. Nothing may crash (the address sanitizer sees
// it), and what is accepted is visited to its end.
TEST(LogRecord, DamageUnderARightChecksumNeverReadsBeyondTheRecord) {
  std::string bytes;
  encode_record(sample_batch(5).record(), 1, &bytes);
  bytes.resize(bytes.size() - 4);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x03, 0x7F, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(value);
      put(&damaged, crc32c(damaged));
      const Result<RecordView> view = RecordView::parse(damaged);
      refused += !view.ok();
      Transcript transcript;
      if (view.ok()) {
        EXPECT_TRUE(view->visit(&transcript).ok());
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

// A record of a hundred bytes that claims four billion entries. Without a check of the counts first, each would cost
// seconds.
TEST(LogRecord, CountsThatTheBytesCannotHoldAreRefusedAtOnce) {
  constexpr std::size_t kWritesAt = 72, kSessionsAt = 76, kKeyBytesAt = 80, kValueBytesAt = 88;
  const auto refusal = [](std::size_t at, std::size_t width) {
    Batch empty(1);
    std::string bytes;
    encode_record(empty.record(), 1, &bytes);
    bytes.resize(bytes.size() - 4);
    for (std::size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<char>(i + 1 < width ? 0xFF : 0x7F);
    put(&bytes, crc32c(bytes));
    const Status status = RecordView::parse(bytes).status();
    EXPECT_EQ(status.code(), StatusCode::data_loss);
    return status.message();
  };
  EXPECT_EQ(refusal(kWritesAt, 4), "log record: more writes than its bytes hold");
  EXPECT_EQ(refusal(kKeyBytesAt, 8), "log record: more writes than its bytes hold");
  EXPECT_EQ(refusal(kValueBytesAt, 8), "log record: more writes than its bytes hold");
  EXPECT_EQ(refusal(kSessionsAt, 4), "log record: more session entries than its bytes hold");
}

// The fuzz target found these: a first version near 2^64 wrapped around, and a rank or a key that encode_record never
// writes was accepted.
TEST(LogRecord, VersionsRanksAndKeysThatNoBatchHasAreRefused) {
  constexpr std::size_t kFirstVersionAt = 32, kRankStepsAt = kRecordHeaderBytes + 9;
  const auto refusal = [](const Batch& batch, std::size_t at, const std::string& patch) {
    std::string bytes;
    encode_record(batch.record(), 1, &bytes);
    bytes.resize(bytes.size() - 4);
    bytes.replace(at, patch.size(), patch);
    put(&bytes, crc32c(bytes));
    const Status status = RecordView::parse(bytes).status();
    EXPECT_EQ(status.code(), StatusCode::data_loss);
    return status.message();
  };
  Batch batch(1);
  batch.write_integer(0, "a", 1);
  batch.write_integer(0x80000000, "b", 1);
  batch.write_integer(0xFFFFFFFF, "c", 1);
  EXPECT_EQ(refusal(batch, kFirstVersionAt, std::string(8, '\xFF')), "log record: a version is beyond the batch");
  EXPECT_EQ(refusal(batch, kRankStepsAt, "\1"), "log record: a rank is beyond its limit");  // one more for each step
  Batch empty_key(1);
  empty_key.write_integer(0, "", 1);
  empty_key.write_integer(0, "ab", 1);
  EXPECT_EQ(refusal(empty_key, 0, ""), "log record: key length");
}

TEST(LogRecord, UnknownFormatIsNotDamage) {
  std::string bytes;
  encode_record(sample_batch(5).record(), 1, &bytes);
  bytes.resize(bytes.size() - 4);
  bytes[4] = 2;
  put(&bytes, crc32c(bytes));
  const Status status = RecordView::parse(bytes).status();
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("format 2"), std::string::npos) << status.message();
}

TEST(LogRecord, AnUnknownFlagIsNotDamage) {
  std::string bytes;
  encode_record(sample_batch(5).record(), 1, &bytes);
  bytes.resize(bytes.size() - 4);
  bytes[6] = 16;
  put(&bytes, crc32c(bytes));
  const Status status = RecordView::parse(bytes).status();
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("flags 16; this version reads format 1, flags 0 to 15"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace kilokv::server::storage
