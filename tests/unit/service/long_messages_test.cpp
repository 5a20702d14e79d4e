// What the parse of a long message takes. A few bytes on the wire may become a hundred in memory, so each message here
// is 4 MiB of the shortest elements, and the memory of the process must hardly grow.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "server/core/access/access_table.hpp"
#include "server/service/long_rows.hpp"
#include "tests/unit/service/messages.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kMessageBytesMax = std::uint64_t{4} << 20;
constexpr std::uint64_t kLittle = std::uint64_t{48} << 20;

std::uint64_t kib_of(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1));
  }
  return 0;
}

// How much the process grows, at the most, while `run` runs.
template <class Run>
std::uint64_t growth_of(const Run& run) {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak is now what it is
  const std::uint64_t before = kib_of("VmRSS");
  run();
  const std::uint64_t peak = kib_of("VmHWM");
  return (peak - std::min(peak, before)) << 10;
}

std::string varint(std::uint64_t number) {
  std::string out;
  for (; number >= 128; number >>= 7) out += static_cast<char>(number | 128);
  return out + static_cast<char>(number);
}

std::string tag(int number, int wire) {
  return varint(static_cast<std::uint64_t>(number) << 3 | static_cast<unsigned>(wire));
}

std::string part(int number, const std::string& bytes) { return tag(number, 2) + varint(bytes.size()) + bytes; }

std::string many(const std::string& text, std::size_t bytes = kMessageBytesMax - 64) {
  std::string out;
  out.reserve(bytes + text.size());
  while (out.size() + text.size() <= bytes) out += text;
  return out;
}

// In slices of `size`, as they come from the network.
grpc::ByteBuffer buffer_of(const std::string& bytes, std::size_t size = 16384) {
  std::vector<grpc::Slice> slices;
  for (std::size_t begin = 0; begin < bytes.size(); begin += size) {
    slices.emplace_back(bytes.substr(begin, size));
  }
  return {slices.data(), slices.size()};
}

Status decode_batch(grpc::ByteBuffer buffer, engine::TransactionColumns* columns) {
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<v1::ExecuteBatchRequest>(&arena);
  bool rows_left = false;
  Status status = parse_request(&buffer, kMessageBytesMax, message, &rows_left);
  if (!status.ok()) return status;
  return decode_request(*message, rows_left, &buffer, test::kContext, columns);
}

void expect_refused(const std::string& bytes, const std::string& limit, const std::string& setting) {
  engine::TransactionColumns columns;
  grpc::ByteBuffer buffer = buffer_of(bytes);
  Status status;
  const std::uint64_t growth = growth_of([&] { status = decode_batch(buffer, &columns); });
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  if (const Violation* violation = status.violation(); violation != nullptr) {
    EXPECT_NE(violation->limit.find(limit), std::string::npos) << violation->limit;
    EXPECT_EQ(violation->setting, setting);
  }
  EXPECT_LT(growth, kLittle) << limit;
}

TEST(LongMessages, ManyEmptyTransactions) {
  expect_refused(part(2, many(part(1, ""))), "65536 transactions", "--request-transactions-max");
}

TEST(LongMessages, ManyEmptyPartsOfOneTransaction) {
  expect_refused(part(2, part(1, many(part(1, "")))), "1024 guards", "--guards-max");
  expect_refused(part(2, part(1, many(part(2, "")))), "1024 operations", "--operations-max");
}

// Each in a transaction of its own, below the limits of one.
TEST(LongMessages, ManyEmptyPartsOfManyTransactions) {
  expect_refused(part(2, many(part(1, many(part(1, ""), 2000)))), "a GuardKind", "");
}

// A field that is no element of a list may take memory each time, when it is one of several alternatives.
TEST(LongMessages, ManyAlternatives) {
  expect_refused(part(2, part(1, part(1, many(part(5, "") + part(7, ""))))), "64 fields", "");
  expect_refused(many(part(15, "")), "64 fields", "");
  expect_refused(part(2, part(1, many(part(15, "")))), "64 fields", "");
  expect_refused(part(3, many(part(30, ""))), "64 fields", "");
  expect_refused(part(2, many(part(1, ""))) + part(3, ""), "rows or columns", "");
}

// A byte of a key becomes 21 bytes, and a guard without anything else 7.
TEST(LongMessages, ManyKeysOrGuardsWithoutATransaction) {
  expect_refused(part(3, tag(7, 0) + "\x01" + part(8, many("k"))), "0 keys, two for each guard", "");
  expect_refused(part(3, part(9, many("\x01"))), "", "");
}

// The parse keeps an element of a wrong type as an unknown field.
TEST(LongMessages, ManyElementsOfAWrongType) {
  expect_refused(part(3, many(tag(1, 0) + "\x01")), "64 fields", "");
  expect_refused(part(3, many(tag(1, 1) + "abcdefgh")), "64 fields", "");
}

template <class Message>
void expect_short(const std::string& bytes, const std::string& limit) {
  grpc::ByteBuffer buffer = buffer_of(bytes);
  Status status;
  const std::uint64_t growth = growth_of([&] {
    Message message;
    status = parse_message(&buffer, kMessageBytesMax, {.transactions = test::kLimits}, &message);
  });
  EXPECT_EQ(status.code(), StatusCode::invalid_argument) << limit;
  EXPECT_NE(status.message().find(limit), std::string::npos) << status.message();
  EXPECT_LT(growth, kLittle) << limit;
}

TEST(LongMessages, ListsOfOtherCalls) {
  expect_short<v1::GetRequest>(many(part(1, "")), "1024 keys");
  expect_short<v1::UploadReadSetRequest>(many(part(3, "")), "131072 keys in one message");
  expect_short<v1::UploadReadSetRequest>(part(4, many("\x01")), "131072 versions in one message");
  expect_short<v1::CancelRequest>(part(2, part(3, many("\x01"))), "65536 indices");
  expect_short<v1::CancelRequest>(part(2, many(tag(3, 0) + "\x01")), "65536 indices");
  expect_short<v1::ChangeAccessRequest>(part(1, many(part(2, ""))), "ranges, roles or names");
  expect_short<v1::ChangeAccessRequest>(part(4, many(part(2, ""))), "ranges, roles or names");
  expect_short<v1::ExecuteRequest>(part(2, many(part(1, ""))), "1024 guards");
  expect_short<v1::StatusRequest>(many(part(1, "")), "64 fields");
}

TEST(LongMessages, LongRowsDecodeAsShortOnesDo) {
  test::Generator generator(3);
  v1::ExecuteBatchRequest request;
  *request.mutable_rows() = test::random_rows(&generator, 20000);
  request.mutable_id()->set_number(7);
  request.set_detached(true);
  const std::string bytes = request.SerializeAsString();
  ASSERT_GT(bytes.size(), 4 * kShortParseBytes);
  ASSERT_LT(bytes.size(), kMessageBytesMax);
  engine::TransactionColumns expected;
  ASSERT_TRUE(decode(request.rows(), test::kContext, &expected).ok());
  for (const std::size_t size : {std::size_t{100}, std::size_t{16384}, bytes.size()}) {
    grpc::ByteBuffer buffer = buffer_of(bytes, size);
    v1::ExecuteBatchRequest head;
    bool rows_left = false;
    ASSERT_TRUE(parse_request(&buffer, kMessageBytesMax, &head, &rows_left).ok());
    EXPECT_TRUE(rows_left);
    EXPECT_TRUE(head.has_rows());
    EXPECT_EQ(head.id().number(), 7u);
    EXPECT_TRUE(head.detached());
    engine::TransactionColumns columns;
    ASSERT_TRUE(decode_batch(buffer, &columns).ok());
    EXPECT_TRUE(test::equal(columns, expected)) << size;
  }
  engine::TransactionColumns columns;
  EXPECT_EQ(decode_batch(buffer_of(bytes.substr(0, bytes.size() / 2)), &columns).reason(),
            ErrorReason::malformed_message);
}

TEST(LongMessages, LongColumnsAreParsedAtOnce) {
  test::Generator generator(4);
  engine::TransactionColumns expected;
  ASSERT_TRUE(decode(test::random_rows(&generator, 10000), test::kContext, &expected).ok());
  v1::ExecuteBatchRequest request;
  *request.mutable_columns() = test::to_message(expected);
  const std::string bytes = request.SerializeAsString();
  ASSERT_GT(bytes.size(), kShortParseBytes);
  engine::TransactionColumns columns;
  ASSERT_TRUE(decode_batch(buffer_of(bytes), &columns).ok());
  EXPECT_TRUE(test::equal(columns, expected));
}

}  // namespace
}  // namespace kilokv::server
