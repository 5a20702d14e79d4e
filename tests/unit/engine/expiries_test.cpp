// When keys expire, after a batch.

#include <string>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "tests/unit/engine/fixture.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::test {
namespace {

TimeUs expiry(const Bench& bench, std::string_view key) { return bench.engine->find(key).expires_us; }

void put(ColumnsBuilder& b, std::string_view key) { b.op(OpKind::put, b.key(key), Operand::integer, 1); }
void put(ColumnsBuilder& b, std::string_view key, Expiry kind, std::int64_t us) {
  put(b, key);
  b.expire(kind, us);
}
void add(ColumnsBuilder& b, std::string_view key) { b.op(OpKind::add, b.key(key), Operand::integer, 1); }

// "write:time" for each write with an expiry.
std::string logged(const Bench& bench) {
  std::string text;
  for (std::size_t i = 0; i < bench.writes.expiry_write.size(); ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(bench.writes.expiry_write[i]) + ":" +
            std::to_string(bench.writes.expires_us[i]);
  }
  return text;
}

TEST(a_put_and_an_add_set_an_expiry) {
  Bench bench;
  bench.add([](auto& b) {
    put(b, "plain");
    put(b, "at", Expiry::at, 77);
    put(b, "after", Expiry::after, 5);
    add(b, "added");
    b.expire(Expiry::at, 88);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(expiry(bench, "plain"), 0);
  EXPECT_EQ(expiry(bench, "at"), 77);
  EXPECT_EQ(expiry(bench, "after"), kStamp + 5);
  EXPECT_EQ(expiry(bench, "added"), 88);
  EXPECT_EQ(logged(bench), "1:77 2:" + std::to_string(kStamp + 5) + " 3:88");
  EXPECT_EQ(bench.engine->next_expiry(), 77);
  EXPECT_EQ(bench.engine->stats().expiring, std::size_t{3});
}

TEST(a_later_write_changes_the_expiry) {
  Bench bench;
  for (const char* key : {"put", "add", "delete", "deletes by get", "range", "move"}) {
    bench.add([key](auto& b) { put(b, key, Expiry::at, 50); });
  }
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.engine->stats().expiring, std::size_t{6});
  bench.add([](auto& b) {
    put(b, "put");
    add(b, "add");
    b.op(OpKind::del, b.key("delete"));
    b.op(OpKind::get, b.key("nobody"));
    b.op(OpKind::put, b.key("deletes by get"), Operand::get, 3);
    b.range_op(OpKind::delete_range, "range", "range~", 9);
    add(b, "move");
    b.expire(Expiry::at, 60);
  });
  EXPECT_TRUE(bench.run(200).ok());
  EXPECT_EQ(expiry(bench, "put"), 0);
  EXPECT_EQ(expiry(bench, "add"), 50);
  EXPECT_EQ(expiry(bench, "delete"), 0);
  EXPECT_EQ(expiry(bench, "deletes by get"), 0);
  EXPECT_EQ(expiry(bench, "range"), 0);
  EXPECT_EQ(expiry(bench, "move"), 60);
  EXPECT_EQ(bench.engine->stats().expiring, std::size_t{2});
  EXPECT_EQ(logged(bench), "1:50 5:60");  // an ADD that keeps the expiry says so in the log
  for (const BeforeImage& image : bench.engine->before_images()) EXPECT_EQ(image.expires_us, 50);
  EXPECT_EQ(bench.engine->before_images().size(), std::size_t{6});
}

// Guards, reads and the order of execution know nothing of expiries: a key that is due is there.
TEST(the_last_write_in_the_order_decides) {
  Bench bench;
  bench.add([](auto& b) {
    b.guard(GuardKind::exists, OnFalse::wait, b.key("go"), 0);
    put(b, "a", Expiry::at, 10);
  });
  bench.add([](auto& b) { put(b, "a", Expiry::at, 20); });
  bench.add([](auto& b) { put(b, "go", Expiry::at, 1); });
  bench.add([](auto& b) {
    b.op(OpKind::del, b.key("gone"));
    put(b, "gone", Expiry::at, 30);
    b.op(OpKind::del, b.key("gone"));
    add(b, "gone");  // after the delete it has none to keep
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(bench.outcome(0), Outcome::committed);
  EXPECT_EQ(expiry(bench, "a"), 10);
  EXPECT_EQ(expiry(bench, "gone"), 0);
  EXPECT_EQ(expiry(bench, "go"), 1);
}

TEST(what_is_undone_changes_no_expiry) {
  Bench bench;
  bench.load("full", INT64_MAX);
  bench.add([](auto& b) { put(b, "a", Expiry::at, 40); });
  bench.add([](auto& b) {
    put(b, "a", Expiry::at, 41);
    add(b, "full");
  });
  bench.add([](auto& b) {
    b.guard(GuardKind::exists, OnFalse::fail, b.key("nobody"), 0);
    put(b, "a", Expiry::at, 42);
  });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(expiry(bench, "a"), 40);
}

TEST(keys_are_due_in_the_order_of_their_times) {
  Bench bench;
  for (const auto& [key, time] : {std::pair{"c", 30}, {"a", 10}, {"b", 20}, {"d", 40}}) {
    bench.add([&](auto& b) { put(b, key, Expiry::at, time); });
  }
  EXPECT_TRUE(bench.run().ok());
  const auto due = [&](TimeUs stamp_us, std::size_t max) {
    std::string text;
    bench.engine->visit_due(stamp_us, max, [&](std::string_view key, TimeUs expires_us) {
      text += std::string(key) + std::to_string(expires_us) + " ";
    });
    return text;
  };
  EXPECT_EQ(due(9, 9), "");
  EXPECT_EQ(due(30, 9), "a10 b20 c30 ");
  EXPECT_EQ(due(kNever, 2), "a10 b20 ");
}

// What the log says is enough to get the same state.
TEST(a_replayed_state_is_the_same) {
  Bench bench, replayed;
  bench.add([](auto& b) { put(b, "a", Expiry::at, 10), put(b, "b", Expiry::at, 20), put(b, "c"); });
  EXPECT_TRUE(bench.run().ok());
  const Hash128 without = replayed.engine->state_hash();
  const auto replay = [&] {
    std::size_t expiries = 0;
    for (std::size_t i = 0; i < bench.writes.size(); ++i) {
      const bool expires = expiries < bench.writes.expiry_write.size() && bench.writes.expiry_write[expiries] == i;
      EXPECT_TRUE(replayed.engine
                      ->load(bench.writes.key(i), 100 + bench.writes.rank[i],
                             static_cast<ValueType>(bench.writes.type[i]), bench.writes.word[i], {},
                             expires ? bench.writes.expires_us[expiries] : 0)
                      .ok());
      if (expires) ++expiries;
    }
  };
  replay();
  EXPECT_FALSE(without == replayed.engine->state_hash());
  EXPECT_TRUE(bench.engine->state_hash() == replayed.engine->state_hash());
  EXPECT_TRUE(bench.engine->state_hash() == bench.engine->compute_state_hash());
  EXPECT_TRUE(replayed.engine->load("a", 100, ValueType::integer, 1, {}, 11).ok());
  EXPECT_FALSE(bench.engine->state_hash() == replayed.engine->state_hash());
}

TEST(a_time_to_live_never_wraps) {
  Bench bench;
  bench.add([](auto& b) { put(b, "a", Expiry::after, kNever); });
  EXPECT_TRUE(bench.run().ok());
  EXPECT_EQ(expiry(bench, "a"), kNever);
}

}  // namespace
}  // namespace kilokv::test
