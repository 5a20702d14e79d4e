#include "server/storage/stored_values.hpp"

#include <gtest/gtest.h>

#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

TEST(StoredValues, StateRoundTripsAndIsChecked) {
  const std::vector<StoredRecord> records = {
      {.key = "a", .version = 5, .type = ValueType::integer, .integer = -7, .bytes = {}},
      {.key = "a", .version = kVersionMax, .type = ValueType::bytes, .integer = 0, .bytes = "content"},
      {.key = "a", .version = 6, .type = ValueType::bytes, .integer = 0, .bytes = ""},
      {.key = "a", .version = 7, .type = ValueType::absent, .integer = 0, .bytes = {}},
      {.key = "a", .version = 8, .type = ValueType::integer, .integer = 1, .bytes = {}, .expires_us = 77},
      {.key = "a", .version = 9, .type = ValueType::bytes, .integer = 0, .bytes = "", .expires_us = kNever}};
  for (const StoredRecord& record : records) {
    std::string bytes;
    encode_state(record, &bytes);
    StoredRecord read{.key = "a", .bytes = {}};
    ASSERT_TRUE(decode_state(bytes, &read).ok());
    Transcript expected, met;
    EXPECT_TRUE(expected.state_record(record).ok() && met.state_record(read).ok());
    EXPECT_EQ(met.lines, expected.lines);
    EXPECT_EQ(decode_state(bytes.substr(0, 9), &read).code(), StatusCode::data_loss);
    std::string unknown = bytes;
    unknown[1] = 9;
    EXPECT_EQ(decode_state(unknown, &read).code(), StatusCode::data_loss);
    unknown = bytes;
    unknown[0] = 3;
    EXPECT_EQ(decode_state(unknown, &read).code(), StatusCode::failed_precondition);
  }
  for (const StoredRecord& wrong :
       {StoredRecord{.key = "a", .version = 8, .bytes = {}, .expires_us = 77},
        StoredRecord{.key = "a", .version = 8, .type = ValueType::integer, .bytes = {}, .expires_us = -1}}) {
    std::string bytes;
    encode_state(wrong, &bytes);
    StoredRecord read{.key = "a", .bytes = {}};
    EXPECT_EQ(decode_state(bytes, &read).code(), StatusCode::data_loss);
  }
}

TEST(StoredValues, SessionRoundTripsAndEveryCutIsFound) {
  StoredSession session;
  session.lease_us = 1234;
  session.acknowledged_through = 9;
  session.requests = {{.number = 10, .digest = {.low = 1, .high = 2}, .transactions = 4, .results = {"one", ""}},
                      {.number = 12, .digest = {.low = 3, .high = 4}, .transactions = 1, .results = {}}};
  StoredSession read;
  struct Case {
    const char* user;
    std::uint64_t holder;
    bool frozen;
    const char* formats;
  };
  // `read` keeps nothing of one before.
  for (const auto& [user, holder, frozen, formats] :
       {Case{"alice", 3, true, "\4\3"}, Case{"alice", 3, false, "\3"}, Case{"", 1, true, "\4\3"},
        Case{"", 1, false, "\3"}, Case{"alice", 0, true, "\4\2"}, Case{"alice", 0, false, "\2"},
        Case{"", 0, true, "\4\1"}, Case{"", 0, false, "\1"}}) {
    session.user = user;
    session.holder = holder;
    session.frozen = frozen;
    const std::string bytes = encode_session(session);
    EXPECT_TRUE(bytes.starts_with(formats));
    ASSERT_TRUE(decode_session(bytes, &read).ok());
    Transcript expected, met;
    EXPECT_TRUE(expected.session(session).ok() && met.session(read).ok());
    EXPECT_EQ(met.lines, expected.lines);
    EXPECT_EQ(read.user, session.user);
    EXPECT_EQ(read.holder, session.holder);
    EXPECT_EQ(read.frozen, session.frozen);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_EQ(decode_session(bytes.substr(0, i), &read).code(), StatusCode::data_loss);
    }
    EXPECT_EQ(decode_session(bytes + "x", &read).code(), StatusCode::data_loss);
  }
}

TEST(StoredValues, AnUnknownFormatOfASessionIsNotDamage) {
  std::string bytes = encode_session(StoredSession());
  bytes.front() = 5;
  StoredSession read;
  for (const std::string& unknown : {bytes, '\4' + bytes}) {
    const Status status = decode_session(unknown, &read);
    EXPECT_EQ(status.code(), StatusCode::failed_precondition);
    EXPECT_EQ(status.message(), "session record has format 5; this version reads formats 1 to 4");
  }
}

TEST(StoredValues, SessionKeyRoundTripsAndHasOneOfTwoLengths) {
  StoredSession session, read;
  for (std::size_t i = 0; i < session.session.bytes.size(); ++i) {
    session.session.bytes[i] = static_cast<unsigned char>(200 + i);
  }
  std::uint64_t generation = 0;
  for (const std::uint64_t piece : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    session.piece = piece;
    const std::string key = encode_session_key(0x0102030405060708, session);
    EXPECT_EQ(key.size(), piece == 0 ? 24u : 32u);
    ASSERT_TRUE(decode_session_key(key, &generation, &read).ok());
    EXPECT_EQ(generation, 0x0102030405060708u);
    EXPECT_EQ(read.session, session.session);
    EXPECT_EQ(read.piece, piece);
  }
  for (std::size_t length = 0; length <= 40; ++length) {
    const StatusCode code = decode_session_key(std::string(length, 'k'), &generation, &read).code();
    EXPECT_EQ(code, length == 24 || length == 32 ? StatusCode::ok : StatusCode::data_loss) << length;
  }
  const std::string first_twice = std::string(24, 'k') + std::string(8, '\0');  // the first piece has the short key
  EXPECT_EQ(decode_session_key(first_twice, &generation, &read).code(), StatusCode::data_loss);
}

TEST(StoredValues, MetadataRoundTripsAndEveryCutIsFound) {
  Checkpoint checkpoint{
      .covers = position_after(sample_batch(3)), .record_crc = 77, .generation = 4, .session_count = 5};
  const std::string bytes = encode_checkpoint(checkpoint);
  const Result<Checkpoint> read = decode_checkpoint(bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(encode_checkpoint(*read), bytes);
  EXPECT_EQ(read->covers.checkpoint_batch, 3u);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(decode_checkpoint(bytes.substr(0, i)).ok());

  const LogSegment segment{.first_batch = 5, .last_batch = 9, .last_time_us = -3, .bytes = 100};
  LogSegment read_segment{.first_batch = 5};
  ASSERT_TRUE(decode_segment(encode_segment(segment), &read_segment).ok());
  EXPECT_EQ(encode_segment(read_segment), encode_segment(segment));
  read_segment.first_batch = 10;
  EXPECT_FALSE(decode_segment(encode_segment(segment), &read_segment).ok());
}

}  // namespace
}  // namespace kilokv::server::storage
