#include "kilokv/batch.hpp"

#include <gtest/gtest.h>

#include "client/lib/src/batch_columns.hpp"
#include "client/lib/src/encode.hpp"

namespace kilokv::client {
namespace {

using namespace std::string_view_literals;

v1::SessionRequest decode(const Batch& batch, Encoding encoding) {
  v1::SessionRequest head;
  head.set_number(9);
  const grpc::ByteBuffer message = join(head, encode_transactions(batch, encoding));
  grpc::Slice bytes;
  EXPECT_TRUE(message.DumpToSingleSlice(&bytes).ok());
  v1::SessionRequest request;
  EXPECT_TRUE(request.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  EXPECT_EQ(request.number(), 9u);
  return request;
}

void add_transfer(Batch* batch, std::string_view from, std::string_view to, std::int64_t amount) {
  batch->begin();
  const Key source = batch->key(from);
  batch->guard(source, Compare::greater_equal, amount);
  batch->add(source, -amount);
  batch->add(batch->key(to), amount);
  batch->end();
}

// Every kind of guard, operation and operand.
void add_everything(Batch* batch) {
  batch->begin({.precedence = 3, .wait_timeout_us = 1500, .expire_runs_else = true});
  const Key a = batch->key("a");
  const Key b = batch->key("bb");
  batch->guard_exists(a);
  batch->guard_absent(b, OnFalse::wait);
  batch->guard(a, Compare::less, -5);
  batch->guard_keys(a, Compare::not_equal, b);
  batch->guard_version(a, 11);
  batch->guard_unchanged(b, 12, OnFalse::wait);
  batch->guard_bytes(a, "x\0y"sv);
  batch->guard_range_unchanged("f", "", 13);
  batch->guard_time_before(14);
  batch->guard_time_after(b, OnFalse::wait);
  const Op get = batch->get(a);
  batch->put(b, "value");
  batch->put(b, FromGet{get});
  batch->add(b, FromGet{get, true});
  batch->put(a, CommitVersion{});
  batch->put(a, BatchTime{});
  batch->del(a);
  batch->otherwise();
  batch->range_get("a", "c", 7);
  batch->delete_range("", "", 8);
  batch->range_get_reverse("b", "d", 9);
  batch->end();
}

TEST(Batch, PlainTransfersLeaveOptionalColumnsEmpty) {
  Batch batch;
  add_transfer(&batch, "0000000000000001", "0000000000000002", 5);
  add_transfer(&batch, "0000000000000003", "0000000000000004", 6);
  const v1::SessionRequest request = decode(batch, Encoding::columns);
  const v1::TransactionColumns& c = request.columns();
  EXPECT_EQ(c.key_length(), 16u);
  EXPECT_EQ(c.key_ends_size(), 0);
  EXPECT_EQ(c.key_bytes().size(), 64u);
  EXPECT_EQ(c.else_ends_size(), 0);
  EXPECT_TRUE(c.precedence().empty());
  EXPECT_EQ(c.wait_timeout_us_size(), 0);
  EXPECT_TRUE(c.expire_runs_else().empty());
  EXPECT_TRUE(c.guard_on_false().empty());
  EXPECT_EQ(c.guard_other_key_size(), 0);
  EXPECT_TRUE(c.operation_operand().empty());
  ASSERT_EQ(c.then_ends_size(), 2);
  EXPECT_EQ(c.then_ends(0), 2u);
  EXPECT_EQ(c.then_ends(1), 4u);
  EXPECT_EQ(c.operation_value(0), -5);
  EXPECT_EQ(c.operation_key(3), 3u);
}

TEST(Batch, OptionalColumnsAreFilledInFromTheFirstTransactionOn) {
  Batch batch;
  add_transfer(&batch, "aaaa", "bbbb", 5);
  add_everything(&batch);
  add_transfer(&batch, "c", "d", 5);
  const v1::SessionRequest request = decode(batch, Encoding::columns);
  const v1::TransactionColumns& c = request.columns();
  EXPECT_EQ(c.precedence(), "\0\3\0"sv);
  ASSERT_EQ(c.wait_timeout_us_size(), 3);
  EXPECT_EQ(c.wait_timeout_us(1), 1500u);
  EXPECT_EQ(c.expire_runs_else(), "\0\1\0"sv);
  EXPECT_EQ(c.guard_on_false(), "\0\0\1\0\0\0\1\0\0\0\1\0"sv);
  ASSERT_EQ(c.guard_other_key_size(), 12);
  EXPECT_EQ(c.guard_other_key(0), 0xFFFFFFFFu);
  EXPECT_EQ(c.guard_other_key(4), 3u);
  EXPECT_EQ(c.guard_other_key(11), 0xFFFFFFFFu);
  EXPECT_EQ(c.guard_key(9), 0xFFFFFFFFu);
  EXPECT_EQ(c.guard_operand(9), 14);
  EXPECT_EQ(c.guard_key(10), 3u);
  EXPECT_EQ(c.key_length(), 0u);
  ASSERT_EQ(c.key_ends_size(), 6);
  EXPECT_EQ(c.key_ends(1), 8u);
  EXPECT_EQ(c.key_ends(2), 9u);
  EXPECT_EQ(c.key_ends(3), 11u);
  ASSERT_EQ(c.else_ends_size(), 3);
  EXPECT_EQ(c.else_ends(0), 2u);
  EXPECT_EQ(c.then_ends(1), 9u);
  EXPECT_EQ(c.else_ends(1), 12u);
  EXPECT_EQ(c.then_ends(2), 14u);
  EXPECT_EQ(c.else_ends(2), 14u);
  EXPECT_EQ(c.operation_operand().size(), 14u);
  EXPECT_EQ(batch.columns().range_from(1), "a");
  EXPECT_EQ(batch.columns().range_to(1), "c");
  EXPECT_EQ(batch.columns().range_to(2), "");
}

TEST(Batch, RowsSayTheSame) {
  Batch batch;
  add_transfer(&batch, "aaaa", "bbbb", 5);
  add_everything(&batch);
  const v1::SessionRequest request = decode(batch, Encoding::rows);
  ASSERT_EQ(request.rows().transactions_size(), 2);
  const v1::Transaction& transfer = request.rows().transactions(0);
  ASSERT_EQ(transfer.guards_size(), 1);
  EXPECT_EQ(transfer.guards(0).kind(), v1::GUARD_KIND_GREATER_EQUAL);
  EXPECT_EQ(transfer.guards(0).integer(), 5);
  EXPECT_EQ(transfer.then(0).operand().integer(), -5);
  EXPECT_EQ(transfer.then(1).key(), "bbbb");
  const v1::Transaction& t = request.rows().transactions(1);
  EXPECT_EQ(t.precedence(), 3u);
  EXPECT_EQ(t.wait_timeout_us(), 1500u);
  EXPECT_TRUE(t.expire_runs_else());
  EXPECT_FALSE(request.rows().transactions(0).expire_runs_else());
  ASSERT_EQ(t.guards_size(), 10);
  EXPECT_EQ(t.guards(1).on_false(), v1::ON_FALSE_WAIT);
  EXPECT_EQ(t.guards(2).integer(), -5);
  EXPECT_EQ(t.guards(3).other_key(), "bb");
  EXPECT_EQ(t.guards(4).version(), 11u);
  EXPECT_EQ(t.guards(6).bytes(), "x\0y"sv);
  EXPECT_EQ(t.guards(7).range().from(), "f");
  EXPECT_EQ(t.guards(7).version(), 13u);
  EXPECT_TRUE(t.guards(7).key().empty());
  EXPECT_EQ(t.guards(8).time_us(), 14u);
  EXPECT_TRUE(t.guards(8).key().empty());
  EXPECT_EQ(t.guards(9).key(), "bb");
  EXPECT_EQ(t.guards(9).operand_case(), v1::Guard::OPERAND_NOT_SET);
  EXPECT_EQ(t.guards(9).on_false(), v1::ON_FALSE_WAIT);
  ASSERT_EQ(t.then_size(), 7);
  EXPECT_EQ(t.then(1).operand().bytes(), "value");
  EXPECT_EQ(t.then(2).operand().get(), 0u);
  EXPECT_EQ(t.then(3).operand().get_negated(), 0u);
  EXPECT_TRUE(t.then(4).operand().commit_version());
  EXPECT_TRUE(t.then(5).operand().batch_time());
  EXPECT_FALSE(t.then(6).has_operand());
  ASSERT_EQ(t.else__size(), 3);
  EXPECT_EQ(t.else_(2).kind(), v1::OPERATION_KIND_RANGE_GET_REVERSE);
  EXPECT_EQ(t.else_(2).range().from(), "b");
  EXPECT_EQ(t.else_(2).limit(), 9u);
  EXPECT_EQ(t.else_(0).limit(), 7u);
  EXPECT_EQ(t.else_(0).range().to(), "c");
}

TEST(Batch, KeysOfOneLengthThenAnEmptyOne) {
  Batch batch;
  batch.begin();
  batch.get(batch.key("ab"));
  batch.get(batch.key(""));
  batch.end();
  EXPECT_EQ(batch.columns().key(0), "ab");
  EXPECT_EQ(batch.columns().key(1), "");
  batch.clear();
  EXPECT_TRUE(batch.empty());
  batch.begin();
  batch.get(batch.key(""));
  batch.get(batch.key("abc"));
  batch.end();
  EXPECT_EQ(batch.columns().key(0), "");
  EXPECT_EQ(batch.columns().key(1), "abc");
}

std::string misuse_of(const std::function<void(Batch*)>& build) {
  Batch batch;
  build(&batch);
  const Error error = check_batch(batch);
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  return error.message;
}

TEST(Batch, MisuseIsNamed) {
  EXPECT_NE(misuse_of([](Batch*) {}).find("no transaction"), std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) { b->begin(); }).find("no end()"), std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) { b->get(b->key("a")); }).find("outside"), std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) { b->range_get("a", "b", 1); }).find("outside"), std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) {
              b->begin();
              b->get(Key{4});
              b->end();
            }).find("a key that"),
            std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) {
              b->begin();
              b->put(b->key("a"), FromGet{Op{0}});
              b->end();
            }).find("FromGet"),
            std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) {
              b->begin();
              const Op get = b->get(b->key("a"));
              b->otherwise();
              b->put(b->key("a"), FromGet{get});
              b->end();
            }).find("FromGet"),
            std::string::npos);
  EXPECT_NE(misuse_of([](Batch* b) {
              b->begin();
              b->add(b->key("a"), "1"sv);
              b->end();
            }).find("integer"),
            std::string::npos);
}

TEST(Batch, ClearForgetsMisuse) {
  Batch batch;
  batch.get(batch.key("a"));
  batch.clear();
  add_transfer(&batch, "a", "b", 1);
  EXPECT_FALSE(check_batch(batch));
}

}  // namespace
}  // namespace kilokv::client
