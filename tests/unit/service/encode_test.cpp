#include "server/service/encode.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace kilokv::server {
namespace {

using engine::FailedIn;
using engine::Outcome;

class FakeSlice final : public ResultSlice {
 public:
  FakeSlice(std::uint32_t size, std::function<void(ResultVisitor*)> visit) : size_(size), visit_(std::move(visit)) {}
  std::uint32_t size() const override { return size_; }
  void visit(ResultVisitor* visitor) const override { visit_(visitor); }

 private:
  std::uint32_t size_;
  std::function<void(ResultVisitor*)> visit_;
};

TransactionResult committed(std::uint32_t index, BatchNumber batch = 5) {
  TransactionResult result;
  result.index = index;
  result.outcome = Outcome::committed;
  result.batch = result.admitted_batch = batch;
  result.rank = index + 10;
  result.version = 1000 + result.rank;
  result.batch_time_us = 77;
  return result;
}

TransactionResult guard_failed(std::uint32_t index) {
  TransactionResult result = committed(index);
  result.outcome = Outcome::guard_failed;
  result.failed_in = FailedIn::guards;
  result.failed_index = 2;
  result.version.reset();
  return result;
}

ReadValue integer_read(std::string_view key, std::int64_t value, std::optional<Version> version) {
  ReadValue read;
  read.key = key;
  read.type = ValueType::integer;
  read.integer = value;
  read.version = version;
  return read;
}

std::deque<v1::ExecuteBatchResponse> encode(const FakeSlice& slice, bool as_columns,
                                            std::uint64_t bytes_max = 1 << 20) {
  std::deque<v1::ExecuteBatchResponse> messages;
  bool ended = false;
  encode_slice<v1::ExecuteBatchResponse>(slice, as_columns, bytes_max,
                                         [&](v1::ExecuteBatchResponse* message, bool is_last) {
                                           EXPECT_FALSE(ended);
                                           ended = is_last;
                                           messages.push_back(std::move(*message));
                                         });
  EXPECT_TRUE(ended);
  return messages;
}

TEST(EncodeColumns, LeavesOutWhatCarriesNothing) {
  const FakeSlice slice(3, [](ResultVisitor* v) {
    for (std::uint32_t i = 0; i < 3; ++i) v->transaction(committed(i));
  });
  const auto messages = encode(slice, true);
  ASSERT_EQ(messages.size(), 1u);
  const v1::ResultColumns& columns = messages[0].columns();
  EXPECT_EQ(columns.batch(), 5u);
  EXPECT_EQ(columns.batch_time_us(), 77);
  EXPECT_EQ(columns.first_version(), 1000u);
  EXPECT_EQ(columns.outcome(), std::string("\1\1\1"));
  EXPECT_EQ(columns.rank_size(), 3);
  EXPECT_EQ(columns.index_size(), 0);
  EXPECT_TRUE(columns.wrote().empty());
  EXPECT_EQ(columns.admitted_batch_size(), 0);
  EXPECT_TRUE(columns.failed_in().empty());
  EXPECT_EQ(columns.failed_index_size(), 0);
  EXPECT_EQ(columns.read_ends_size(), 0);
  EXPECT_TRUE(columns.reads_dropped().empty());
  EXPECT_FALSE(columns.has_guard_values());
  EXPECT_FALSE(columns.has_reads());
}

TEST(EncodeColumns, KeepsWhatCarriesSomething) {
  const FakeSlice slice(3, [](ResultVisitor* v) {
    v->transaction(guard_failed(1));
    v->guard_value(integer_read("poor", 3, 12));
    TransactionResult waited = committed(4);
    waited.admitted_batch = 2;
    v->transaction(waited);
    v->read(0, integer_read("a", -9, 13));
    v->read(2, integer_read("b", 8, std::nullopt));
    ReadValue text;
    text.key = "t";
    text.type = ValueType::bytes;
    text.bytes = "hello";
    text.version = 14;
    v->read(3, text);
    TransactionResult read_only = committed(6);
    read_only.version.reset();
    v->transaction(read_only);
  });
  const v1::ResultColumns columns = encode(slice, true).at(0).columns();
  EXPECT_EQ(columns.index_size(), 3);
  EXPECT_EQ(columns.index(2), 6u);
  EXPECT_EQ(columns.wrote(), std::string("\0\1\0", 3));
  EXPECT_EQ(columns.admitted_batch(1), 2u);
  EXPECT_EQ(columns.failed_in(), std::string("\1\0\0", 3));
  EXPECT_EQ(columns.failed_index(0), 2u);
  EXPECT_EQ(columns.guard_values().integer(0), 3);
  EXPECT_EQ(columns.guard_values().key_bytes(), "poor");
  EXPECT_TRUE(columns.guard_values().own_write().empty());
  ASSERT_EQ(columns.read_ends_size(), 3);
  EXPECT_EQ(columns.read_ends(0), 0u);
  EXPECT_EQ(columns.read_ends(1), 3u);
  EXPECT_EQ(columns.read_ends(2), 3u);
  EXPECT_EQ(columns.reads().type(), std::string("\1\1\2"));
  EXPECT_EQ(columns.reads().own_write(), std::string("\0\1\0", 3));
  EXPECT_EQ(columns.reads().operation(2), 3u);
  EXPECT_EQ(columns.reads().key_bytes(), "abt");
  EXPECT_EQ(columns.reads().value_ends_size(), 1);
  EXPECT_EQ(columns.reads().value_bytes(), "hello");
}

TEST(EncodeColumns, OneMessageForEachBatch) {
  const FakeSlice slice(3, [](ResultVisitor* v) {
    v->transaction(committed(0, 5));
    v->transaction(committed(1, 5));
    v->transaction(committed(2, 9));
  });
  const auto messages = encode(slice, true);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].columns().outcome().size(), 2u);
  EXPECT_EQ(messages[1].columns().batch(), 9u);
  EXPECT_EQ(messages[1].columns().index(0), 2u);
}

TEST(EncodeColumns, GuardValuesStayInStepWhereThereIsNone) {
  const FakeSlice slice(3, [](ResultVisitor* v) {
    TransactionResult dropped = guard_failed(0);
    dropped.reads_dropped = true;
    v->transaction(dropped);
    v->transaction(guard_failed(1));
    v->guard_value(integer_read("poor", 3, 12));
    v->transaction(guard_failed(2));  // by a range guard
  });
  const v1::ResultColumns columns = encode(slice, true).at(0).columns();
  EXPECT_EQ(columns.reads_dropped(), std::string("\1\0\0", 3));
  EXPECT_EQ(columns.guard_values().type(), std::string("\0\1\0", 3));
  EXPECT_EQ(columns.guard_values().integer(1), 3);
}

TEST(EncodeRows, CarriesEverything) {
  const FakeSlice slice(2, [](ResultVisitor* v) {
    v->transaction(guard_failed(0));
    v->guard_value(integer_read("poor", 3, 12));
    TransactionResult cancelled;
    cancelled.index = 1;
    cancelled.cancelled = true;
    v->transaction(cancelled);
  });
  const v1::ResultRows rows = encode(slice, false).at(0).rows();
  ASSERT_EQ(rows.results_size(), 2);
  EXPECT_EQ(rows.results(0).outcome(), v1::OUTCOME_GUARD_FAILED);
  EXPECT_EQ(rows.results(0).failed_in(), v1::FAILED_IN_GUARDS);
  EXPECT_EQ(rows.results(0).failed_index(), 2u);
  EXPECT_EQ(rows.results(0).version(), 0u);
  EXPECT_EQ(rows.results(0).guard_value().value().integer(), 3);
  EXPECT_EQ(rows.results(0).guard_value().version(), 12u);
  EXPECT_EQ(rows.results(1).outcome(), v1::OUTCOME_CANCELLED);
}

TEST(EncodeSlice, SplitsLargeAnswers) {
  const std::string key(1000, 'k');
  const FakeSlice slice(100, [&](ResultVisitor* v) {
    for (std::uint32_t i = 0; i < 100; ++i) {
      v->transaction(committed(i));
      v->read(0, integer_read(key, 1, 2));
    }
  });
  for (const bool as_columns : {false, true}) {
    std::size_t results = 0;
    const auto messages = encode(slice, as_columns, 10000);
    for (const v1::ExecuteBatchResponse& message : messages) {
      EXPECT_LE(message.ByteSizeLong(), 10000u);
      results +=
          as_columns ? message.columns().outcome().size() : static_cast<std::size_t>(message.rows().results_size());
    }
    EXPECT_GE(messages.size(), 8u);
    EXPECT_EQ(results, 100u);
  }
}

TEST(EncodeSlice, ReadsBeyondWhatAMessageHoldsAreDropped) {
  const std::string key(1000, 'k');
  const FakeSlice slice(2, [&](ResultVisitor* v) {
    v->transaction(committed(0));
    for (std::uint32_t i = 0; i < 1000; ++i) v->read(i, integer_read(key, 1, 2));
    v->transaction(committed(1));
    v->read(0, integer_read(key, 1, 2));
  });
  const auto rows = encode(slice, false, 10000);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(rows[0].rows().results(0).reads_dropped());
  EXPECT_EQ(rows[0].rows().results(0).reads_size(), 9);
  EXPECT_LE(rows[0].ByteSizeLong(), 10000u);
  EXPECT_FALSE(rows[1].rows().results(0).reads_dropped());
  const auto columns = encode(slice, true, 10000);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].columns().reads_dropped(), std::string("\1"));
  EXPECT_EQ(columns[0].columns().read_ends(0), columns[0].columns().reads().type().size());
  EXPECT_EQ(columns[0].columns().read_ends(0), 9u);
  EXPECT_LE(columns[0].ByteSizeLong(), 10000u);
  EXPECT_TRUE(columns[1].columns().reads_dropped().empty());
}

// Whatever the mix: no message is too long, no transaction is split, and what is left out is said.
TEST(EncodeSlice, MessagesOfAnyMixAreWithinTheirLimit) {
  constexpr std::uint64_t kBytesMax = 5000;
  const std::string text(3000, 'x');
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<std::uint32_t> lengths;  // of the reads, of each transaction
    const FakeSlice slice(200, [&](ResultVisitor* v) {
      std::mt19937_64 random(seed);
      lengths.assign(200, 0);
      for (std::uint32_t i = 0; i < 200; ++i) {
        const bool failed = random() % 3 == 0;
        v->transaction(failed ? guard_failed(i * 1000000) : committed(i * 1000000, 5 + random() % 2));
        if (failed && random() % 2 == 0) v->guard_value(integer_read("guard", INT64_MIN, kVersionMax));
        for (std::uint64_t reads = random() % 30 == 0 ? 200 : random() % 5; reads > 0; --reads) {
          ReadValue value = integer_read("k", INT64_MIN, kVersionMax);
          if (random() % 4 == 0) {
            value.type = ValueType::bytes;
            value.bytes = std::string_view(text).substr(0, random() % text.size());
          }
          v->read(UINT32_MAX, value);
          ++lengths[i];
        }
      }
    });
    for (const bool as_columns : {false, true}) {
      std::size_t results = 0;
      for (const v1::ExecuteBatchResponse& message : encode(slice, as_columns, kBytesMax)) {
        EXPECT_LE(message.ByteSizeLong(), kBytesMax);
        if (as_columns) {
          results += message.columns().outcome().size();
          continue;
        }
        for (const v1::TransactionResult& result : message.rows().results()) {
          const auto reads = static_cast<std::uint32_t>(result.reads_size());
          EXPECT_TRUE(result.reads_dropped() ? reads < lengths[results] : reads == lengths[results]);
          ++results;
        }
      }
      EXPECT_EQ(results, 200u);
    }
  }
}

TEST(EncodeList, IsCutWhereTheMessageIsFull) {
  ParkedPage page{std::vector<ParkedTransaction>(10), false};
  for (ParkedTransaction& one : page.parked) one.guard_key.assign(1000, 'k');
  v1::ListParkedResponse message;
  fill_list(page, 1 << 20, &message);
  EXPECT_EQ(message.parked_size(), 10);
  EXPECT_FALSE(message.more());
  page.more = true;
  fill_list(page, 1 << 20, &message);
  EXPECT_TRUE(message.more());
  page.more = false;
  message.Clear();
  fill_list(page, 5000, &message);
  EXPECT_EQ(message.parked_size(), 4);
  EXPECT_TRUE(message.more());
  EXPECT_LE(message.ByteSizeLong(), 5000u);
}

TEST(EncodeSlice, AnEmptySliceIsOneMessage) {
  const FakeSlice slice(0, [](ResultVisitor*) {});
  EXPECT_EQ(encode(slice, true).size(), 1u);
  EXPECT_EQ(encode(slice, false).size(), 1u);
}

}  // namespace
}  // namespace kilokv::server
