#include "server/core/digest.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "engine/base/key_hash.hpp"

namespace kilokv::server {
namespace {

using engine::ColumnsBuilder;
using engine::GuardKind;
using engine::OnFalse;
using engine::Operand;
using engine::OpKind;
using engine::TransactionColumns;

constexpr engine::KeyHashSecret kSecret{1, 2};

// A transfer, with every part that a test wants to change as a member.
struct Transfer {
  std::string from = "alice", to = "bob", note = "rent";
  std::int64_t amount = 5;
  std::uint8_t precedence = 1;
  DurationUs wait_timeout_us = 1000;
  bool expire_runs_else = false;
  OnFalse on_false = OnFalse::wait;
  GuardKind guard = GuardKind::greater_equal;
  std::string range_to = "b";
  std::uint32_t limit = 10;
  bool else_list = false;
  bool unused_keys = false;  // other layout of the columns, same content

  void add_to(TransactionColumns* columns) const {
    ColumnsBuilder builder(columns, kSecret);
    builder.begin(precedence, wait_timeout_us, expire_runs_else);
    if (unused_keys) {
      builder.key("nobody");
      builder.value("nothing");
    }
    const std::uint32_t from_key = builder.key(from);
    builder.guard(guard, on_false, from_key, amount);
    builder.range_guard(GuardKind::range_unchanged, OnFalse::fail, "a", range_to, 7);
    builder.op(OpKind::add, unused_keys ? builder.key(from) : from_key, Operand::integer, -amount);
    builder.op(OpKind::add, builder.key(to), Operand::integer, amount);
    if (else_list) {
      builder.begin_else();
    }
    builder.op(OpKind::put, builder.key("note"), Operand::bytes, builder.value(note));
    builder.range_op(OpKind::range_get, "a", range_to, limit);
    builder.end();
  }
};

Hash128 digest(const std::vector<Transfer>& transfers) {
  TransactionColumns columns;
  for (const Transfer& transfer : transfers) {
    transfer.add_to(&columns);
  }
  return digest_of(columns);
}

TEST(DigestTest, SameContentSameDigestWhateverTheLayout) {
  Transfer other_layout;
  other_layout.unused_keys = true;
  EXPECT_EQ(digest({Transfer{}}), digest({Transfer{}}));
  EXPECT_EQ(digest({Transfer{}}), digest({other_layout}));
  EXPECT_EQ(digest({Transfer{}, other_layout}), digest({other_layout, Transfer{}}));
}

TEST(DigestTest, TimesAndKeysWithTimesDiffer) {
  const auto of = [](GuardKind kind, const std::string& key, TimeUs time_us, bool more_keys = false) {
    TransactionColumns columns;
    ColumnsBuilder builder(&columns, kSecret);
    builder.begin(0, 0);
    if (more_keys) builder.key("nobody");
    builder.guard(kind, OnFalse::fail, key.empty() ? engine::kNone : builder.key(key), time_us);
    builder.end();
    return digest_of(columns);
  };
  const Hash128 first = of(GuardKind::time_after, "", 7);
  EXPECT_EQ(first, of(GuardKind::time_after, "", 7, true));
  EXPECT_NE(first, of(GuardKind::time_after, "", 8));
  EXPECT_NE(first, of(GuardKind::time_before, "", 7));
  EXPECT_NE(first, of(GuardKind::time_after, "k", 7));
  EXPECT_NE(of(GuardKind::time_after, "l", 0), of(GuardKind::time_after, "k", 0));
  EXPECT_EQ(of(GuardKind::time_after, "k", 0), of(GuardKind::time_after, "k", 9)) << "the key has the time";
}

TEST(DigestTest, EveryPartCounts) {
  const std::vector<std::function<void(Transfer*)>> changes = {
      [](Transfer* t) { t->from = "alicf"; },
      [](Transfer* t) { t->to = "bo"; },
      [](Transfer* t) { t->note = "rents"; },
      [](Transfer* t) { t->amount = 6; },
      [](Transfer* t) { t->precedence = 0; },
      [](Transfer* t) { t->wait_timeout_us = 1001; },
      [](Transfer* t) { t->wait_timeout_us = 0; },
      [](Transfer* t) { t->expire_runs_else = true; },
      [](Transfer* t) { t->wait_timeout_us = 0, t->expire_runs_else = true; },
      [](Transfer* t) { t->on_false = OnFalse::fail; },
      [](Transfer* t) { t->guard = GuardKind::greater; },
      [](Transfer* t) { t->range_to = ""; },
      [](Transfer* t) { t->limit = 11; },
      [](Transfer* t) { t->else_list = true; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Transfer changed;
    changes[i](&changed);
    EXPECT_NE(digest({Transfer{}}), digest({changed})) << "change " << i;
  }
}

TEST(DigestTest, WhereOneTransactionEndsCounts) {
  const auto two_adds = [](bool in_one) {
    TransactionColumns columns;
    ColumnsBuilder builder(&columns, kSecret);
    builder.begin();
    builder.op(OpKind::add, builder.key("a"), Operand::integer, 1);
    if (!in_one) {
      builder.end();
      builder.begin();
    }
    builder.op(OpKind::add, builder.key("b"), Operand::integer, 1);
    builder.end();
    return digest_of(columns);
  };
  EXPECT_NE(two_adds(true), two_adds(false));
  EXPECT_NE(digest({Transfer{}}), digest({Transfer{}, Transfer{}}));
}

TEST(DigestTest, ValuesLargerThanABlockCount) {
  Transfer large;
  large.note = std::string(100'000, 'x');
  Transfer changed = large;
  changed.note[99'999] = 'y';
  EXPECT_NE(digest({large}), digest({changed}));
}

// Here no bytes of ranges exist, and no pointer to them. A sanitizer sees what becomes of it.
TEST(DigestTest, ARangeOfAllKeysHasADigest) {
  const auto range = [](std::string_view to, OpKind kind = OpKind::range_get) {
    TransactionColumns columns;
    ColumnsBuilder builder(&columns, kSecret);
    builder.begin(0, 0);
    builder.range_op(kind, "", to, 10);
    builder.end();
    return digest_of(columns);
  };
  EXPECT_EQ(range(""), range(""));
  EXPECT_NE(range(""), range("a"));
  EXPECT_NE(range("a"), range("a", OpKind::range_get_reverse));
}

// Digests are in the log: a change of the serialization would refuse retries of older requests.
TEST(DigestTest, DoesNotChangeFromVersionToVersion) {
  const Hash128 hash = digest({Transfer{}});
  EXPECT_EQ(hash.low, 651220811370376376u);
  EXPECT_EQ(hash.high, 4312992590793487209u);
}

}  // namespace
}  // namespace kilokv::server
