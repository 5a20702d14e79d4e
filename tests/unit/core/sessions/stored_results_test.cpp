#include "server/core/sessions/stored_results.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/core/sessions/recorded_results.hpp"

namespace kilokv::server {
namespace {

using engine::FailedIn;
using engine::Outcome;
using Random64 = std::mt19937_64;

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

std::string encoded(const ResultSlice& slice, std::uint64_t result_bytes_max = kNoLimit) {
  std::string bytes;
  std::uint64_t read_bytes = ~std::uint64_t{0};
  encode_results(slice, result_bytes_max, &read_bytes, &bytes);
  return bytes;
}

std::vector<std::string> decoded_lines(const std::string& bytes) {
  const Result<StoredSlice> slice = StoredSlice::parse(bytes);
  EXPECT_TRUE(slice.ok()) << slice.status().message();
  return slice.ok() ? lines_of(*slice) : std::vector<std::string>{};
}

RecordedResult committed(std::uint32_t index, BatchNumber batch, std::uint32_t rank, Version first_version) {
  RecordedResult recorded;
  recorded.result.index = index;
  recorded.result.outcome = Outcome::committed;
  recorded.result.batch = batch;
  recorded.result.admitted_batch = batch;
  recorded.result.rank = rank;
  recorded.result.batch_time_us = 1'700'000'000'000'000;
  recorded.result.version = first_version + rank;
  return recorded;
}

RecordedValue random_value(Random64* random) {
  RecordedValue value;
  value.operation = static_cast<std::uint32_t>((*random)() % 1024);
  value.key = std::string(1 + (*random)() % 40, static_cast<char>('a' + (*random)() % 26));
  value.type = static_cast<ValueType>((*random)() % 3);
  if (value.type == ValueType::integer) {
    value.integer = static_cast<std::int64_t>((*random)() >> (*random)() % 64);
  } else if (value.type == ValueType::bytes) {
    value.bytes = std::string((*random)() % 200, static_cast<char>((*random)()));
  }
  if ((*random)() % 4 != 0) {
    value.version = (*random)() % kVersionMax;
  }
  return value;
}

RecordedResult random_result(Random64* random, std::uint32_t index, BatchNumber batch) {
  RecordedResult recorded = committed(index, batch, static_cast<std::uint32_t>((*random)()), 0);
  TransactionResult& result = recorded.result;
  result.batch_time_us = static_cast<TimeUs>(batch) * 1000 - 5;
  result.version.reset();
  if ((*random)() % 8 == 0) {
    result.cancelled = true;
    result.outcome = Outcome::undecided;
    return recorded;
  }
  result.outcome = static_cast<Outcome>(1 + (*random)() % 5);
  result.admitted_batch = batch - (*random)() % 3;
  if ((*random)() % 2 == 0) {
    result.version = (*random)() % kVersionMax;
  }
  if (result.outcome != Outcome::committed) {
    result.failed_in = static_cast<FailedIn>(1 + (*random)() % 3);
    result.failed_index = static_cast<std::uint32_t>((*random)() % 1024);
  }
  if ((*random)() % 4 == 0) {
    recorded.guard = random_value(random);
    recorded.guard->operation = 0;
  }
  for (std::uint64_t reads = (*random)() % 4; reads > 0; --reads) {
    recorded.reads.push_back(random_value(random));
  }
  return recorded;
}

RecordedSlice random_slice(Random64* random) {
  std::vector<RecordedResult> results;
  std::uint32_t index = 0;
  const BatchNumber batch = 10 + (*random)() % 1'000'000;
  for (std::uint64_t count = (*random)() % 20; count > 0; --count) {
    index += (*random)() % 2 == 0 ? 0 : static_cast<std::uint32_t>((*random)() % 1000);
    results.push_back(random_result(random, index++, batch));
  }
  return RecordedSlice(std::move(results));
}

TEST(StoredResultsTest, GivesBackWhatWasEncoded) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random64 random(seed);
    const RecordedSlice slice = random_slice(&random);
    ASSERT_EQ(decoded_lines(encoded(slice)), lines_of(slice));
  }
}

TEST(StoredResultsTest, AppendsToWhatIsThere) {
  const RecordedSlice slice({committed(0, 7, 3, 100)});
  std::string bytes = "before";
  std::uint64_t read_bytes = kNoLimit;
  encode_results(slice, kNoLimit, &read_bytes, &bytes);
  EXPECT_EQ(bytes, "before" + encoded(slice));
}

TEST(StoredResultsTest, ABulkRequestTakesTwoBytesATransaction) {
  std::vector<RecordedResult> results;
  for (std::uint32_t i = 0; i < 4096; ++i) {
    results.push_back(committed(i, 123456, 500 + i, 1'000'000'000));
  }
  EXPECT_LE(encoded(RecordedSlice(std::move(results))).size(), 4096u * 2 + 32);
}

TEST(StoredResultsTest, ReadsBeyondTheLimitAreDroppedAndNothingElse) {
  RecordedResult large = committed(0, 7, 3, 100);
  large.guard = RecordedValue{0, "guard", ValueType::integer, 5, "", 9};
  large.reads = {RecordedValue{0, "small", ValueType::integer, 1, "", 2},
                 RecordedValue{1, "large", ValueType::bytes, 0, std::string(100, 'x'), 3},
                 RecordedValue{2, "after", ValueType::integer, 1, "", 2}};
  RecordedResult small = committed(1, 7, 4, 100);
  small.reads = {RecordedValue{0, "small", ValueType::integer, 1, "", 2}};
  const std::vector<std::string> lines = decoded_lines(encoded(RecordedSlice({large, small}), 100));

  RecordedResult dropped = large;
  dropped.guard.reset();
  dropped.reads.clear();
  dropped.result.reads_dropped = true;
  EXPECT_EQ(lines, lines_of(RecordedSlice({dropped, small})));
  // Stored once more, as a checkpoint might: still dropped.
  EXPECT_EQ(decoded_lines(encoded(RecordedSlice({dropped, small}))), lines);
}

TEST(StoredResultsTest, TheLimitCountsEncodedBytesExactly) {
  RecordedResult result = committed(0, 7, 3, 100);
  result.reads = {RecordedValue{0, "key", ValueType::bytes, 0, std::string(50, 'x'), 3}};
  RecordedResult bare = result;
  bare.reads.clear();
  const std::uint64_t item_bytes = encoded(RecordedSlice({result})).size() - encoded(RecordedSlice({bare})).size();
  EXPECT_EQ(decoded_lines(encoded(RecordedSlice({result}), item_bytes)), lines_of(RecordedSlice({result})));
  bare.result.reads_dropped = true;
  EXPECT_EQ(decoded_lines(encoded(RecordedSlice({result}), item_bytes - 1)), lines_of(RecordedSlice({bare})));
}

TEST(StoredResultsTest, ReadsBeyondWhatIsLeftAreDroppedAndWhatFitsIsTaken) {
  RecordedResult first = committed(0, 7, 3, 100), second = committed(1, 7, 4, 100);
  first.reads = {RecordedValue{0, "key", ValueType::bytes, 0, std::string(50, 'x'), 3}};
  second.reads = {RecordedValue{0, "key", ValueType::bytes, 0, std::string(30, 'x'), 3}};
  RecordedResult bare = first;
  bare.reads.clear();
  const std::uint64_t item_bytes = encoded(RecordedSlice({first})).size() - encoded(RecordedSlice({bare})).size();
  std::uint64_t left = item_bytes + item_bytes - 21;  // one less than both
  std::string bytes;
  encode_results(RecordedSlice({first, second}), kNoLimit, &left, &bytes);
  EXPECT_EQ(left, item_bytes - 21);
  second.reads.clear();
  second.result.reads_dropped = true;
  EXPECT_EQ(decoded_lines(bytes), lines_of(RecordedSlice({first, second})));
  // What the last transaction of a slice takes is not left for the next slice of the request.
  left = item_bytes + 5;
  encode_results(RecordedSlice({first}), kNoLimit, &left, &bytes);
  EXPECT_EQ(left, 5u);
}

TEST(StoredResultsTest, EveryCutIsRefused) {
  Random64 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::string bytes = encoded(random_slice(&random));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_EQ(StoredSlice::parse(bytes.substr(0, length)).status().code(), StatusCode::data_loss) << length;
    }
    ASSERT_FALSE(StoredSlice::parse(bytes + '\x01').ok());
  }
}

// What is accepted must be safe to visit, with indices in order; run under the address sanitizer too.
void visit_if_accepted(const std::string& bytes) {
  const Result<StoredSlice> slice = StoredSlice::parse(bytes);
  if (!slice.ok()) {
    ASSERT_EQ(slice.status().code(), StatusCode::data_loss);
    return;
  }
  ASSERT_EQ(lines_of(*slice).size(), slice->size());
}

TEST(StoredResultsTest, FlippedBytesNeverReadOutOfBounds) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random64 random(seed);
    const std::string bytes = encoded(random_slice(&random));
    for (std::size_t place = 0; place < bytes.size(); ++place) {
      std::string flipped = bytes;
      flipped[place] = static_cast<char>(flipped[place] ^ (1 + random() % 255));
      visit_if_accepted(flipped);
    }
  }
}

TEST(StoredResultsTest, RandomBytesNeverReadOutOfBounds) {
  Random64 random(2);
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes(1 + random() % 64, '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(random() >> random() % 8);
    }
    bytes[0] = 1;
    visit_if_accepted(bytes);
  }
}

// The fuzz target found this.
TEST(StoredResultsTest, ReadsOfATransactionThatDroppedThemAreRefused) {
  RecordedResult recorded = committed(0, 7, 3, 100);
  recorded.result.reads_dropped = true;
  std::string bytes = encoded(RecordedSlice({recorded}));
  const std::string read("\x83\x00\x01k", 4);  // of operation 0: the key "k", absent
  bytes.insert(bytes.size() - 1, read);
  EXPECT_EQ(StoredSlice::parse(bytes).status().code(), StatusCode::data_loss);
  recorded.result.reads_dropped = false;
  bytes = encoded(RecordedSlice({recorded}));
  bytes.insert(bytes.size() - 1, read);
  EXPECT_TRUE(StoredSlice::parse(bytes).ok());
}

TEST(StoredResultsTest, AHugeCountIsRefusedAtOnce) {
  EXPECT_FALSE(StoredSlice::parse(std::string("\x01\xff\xff\xff\xff\x0f\x01\x02", 8)).ok());
}

}  // namespace
}  // namespace kilokv::server
