#include "kilokv/results.hpp"

#include <gtest/gtest.h>

#include "client/lib/src/result_columns.hpp"
#include "tests/unit/client/fake_server.hpp"

namespace kilokv::client {
namespace {

// Three transactions: one committed with reads, one failed guard, one overflow.
std::unique_ptr<v1::ResultColumns> mixed() {
  auto m = std::make_unique<v1::ResultColumns>();
  m->set_batch(8);
  m->set_batch_time_us(123);
  m->set_first_version(1000);
  m->set_outcome(std::string("\1\2\4", 3));
  for (const std::uint32_t rank : {0u, 5u, 2u}) m->add_rank(rank);
  m->set_failed_in(std::string("\0\1\2", 3));
  for (const std::uint32_t index : {0u, 4u, 1u}) m->add_failed_index(index);
  for (const std::uint64_t batch : {8u, 7u, 8u}) m->add_admitted_batch(batch);
  for (const std::uint32_t end : {3u, 3u, 3u}) m->add_read_ends(end);
  v1::ReadColumns* guards = m->mutable_guard_values();
  guards->set_type(std::string("\2", 1));
  guards->add_integer(0);
  guards->add_version(55);
  guards->add_key_ends(2);
  guards->set_key_bytes("gk");
  guards->add_value_ends(3);
  guards->set_value_bytes("gvb");
  v1::ReadColumns* reads = m->mutable_reads();
  reads->set_type(std::string("\0\1\2", 3));
  for (const std::int64_t integer : {0, -9, 0}) reads->add_integer(integer);
  for (const std::uint64_t version : {1u, 2u, 3u}) reads->add_version(version);
  for (const std::uint32_t operation : {0u, 1u, 1u}) reads->add_operation(operation);
  reads->set_own_write(std::string("\0\0\1", 3));
  for (const std::uint32_t end : {1u, 2u, 3u}) reads->add_key_ends(end);
  reads->set_key_bytes("abc");
  reads->add_value_ends(4);
  reads->set_value_bytes("four");
  return m;
}

TEST(Results, ColumnsBecomeViews) {
  Results results;
  std::vector<std::uint32_t> fresh;
  results.columns().reset(3);
  ASSERT_FALSE(results.columns().add(mixed(), &fresh));
  EXPECT_EQ(fresh, (std::vector<std::uint32_t>{0, 1, 2}));
  const ResultView first = results.at(0);
  EXPECT_EQ(first.outcome, Outcome::committed);
  EXPECT_EQ(first.version, 1000u);
  EXPECT_EQ(first.batch, 8u);
  EXPECT_FALSE(first.guard_value);
  ASSERT_EQ(results.read_count(0), 3u);
  EXPECT_EQ(results.read(0, 0).value, ValueView{});
  EXPECT_EQ(results.read(0, 0).version, 1u);
  EXPECT_EQ(results.read(0, 1).value, ValueView{std::int64_t{-9}});
  EXPECT_EQ(results.read(0, 2).value, ValueView{std::string_view("four")});
  EXPECT_EQ(results.read(0, 2).version, std::nullopt);
  EXPECT_EQ(results.read(0, 2).key, "c");
  EXPECT_EQ(results.read(0, 2).operation, 1u);
  const ResultView second = results.at(1);
  EXPECT_EQ(second.outcome, Outcome::guard_failed);
  EXPECT_EQ(second.failed_index, 4u);
  EXPECT_EQ(second.version, std::nullopt);
  EXPECT_EQ(second.admitted_batch, 7u);
  ASSERT_TRUE(second.guard_value);
  EXPECT_EQ(second.guard_value->key, "gk");
  EXPECT_EQ(second.guard_value->value, ValueView{std::string_view("gvb")});
  EXPECT_EQ(second.guard_value->version, 55u);
  EXPECT_EQ(results.outcome(2), Outcome::overflow);
  EXPECT_EQ(results.at(2).failed_in, FailedIn::then_operations);
  EXPECT_EQ(results.read_count(2), 0u);
}

TEST(Results, ElseThatWroteHasAVersion) {
  auto m = std::make_unique<v1::ResultColumns>();
  m->set_first_version(10);
  m->set_outcome(std::string("\2\1", 2));
  m->add_rank(3);
  m->add_rank(4);
  m->set_wrote(std::string("\1\0", 2));
  Results results;
  std::vector<std::uint32_t> fresh;
  results.columns().reset(2);
  ASSERT_FALSE(results.columns().add(std::move(m), &fresh));
  EXPECT_EQ(results.at(0).version, 13u);
  EXPECT_EQ(results.at(1).version, std::nullopt);
}

TEST(Results, AnAnswerThatComesTwiceIsTakenOnce) {
  Results results;
  std::vector<std::uint32_t> fresh;
  results.columns().reset(3);
  auto part = std::make_unique<v1::ResultColumns>(FakeServer::committed(1, 5));
  part->add_index(1);
  ASSERT_FALSE(results.columns().add(std::move(part), &fresh));
  EXPECT_EQ(fresh, (std::vector<std::uint32_t>{1}));
  EXPECT_FALSE(results.columns().complete());
  EXPECT_EQ(results.outcome(0), Outcome::unknown);
  fresh.clear();
  auto all = std::make_unique<v1::ResultColumns>(FakeServer::committed(3, 6));
  ASSERT_FALSE(results.columns().add(std::move(all), &fresh));
  EXPECT_EQ(fresh, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_TRUE(results.columns().complete());
  EXPECT_EQ(results.at(1).batch, 5u);
  EXPECT_EQ(results.at(2).batch, 6u);
}

TEST(Results, MalformedSlicesAreDroppedWhole) {
  using Spoil = std::function<void(v1::ResultColumns*)>;
  const std::vector<Spoil> spoilers = {
      [](auto* m) { m->mutable_outcome()->push_back('\1'); },
      [](auto* m) { m->mutable_outcome()->at(0) = '\0'; },
      [](auto* m) { m->mutable_outcome()->at(0) = '\x7f'; },
      [](auto* m) { m->add_rank(1); },
      [](auto* m) { m->add_index(0); },
      [](auto* m) { m->set_wrote("\1"); },
      [](auto* m) { m->add_failed_index(1); },
      [](auto* m) { m->set_read_ends(0, 4); },
      [](auto* m) { m->set_read_ends(2, 4); },
      [](auto* m) { m->mutable_reads()->set_key_ends(2, 9); },
      [](auto* m) { m->mutable_reads()->set_key_ends(0, 3); },
      [](auto* m) { m->mutable_reads()->add_value_ends(4); },
      [](auto* m) { m->mutable_reads()->set_value_ends(0, 5); },
      [](auto* m) { m->mutable_reads()->mutable_type()->at(0) = '\3'; },
      [](auto* m) { m->mutable_reads()->clear_operation(); },
      [](auto* m) { m->mutable_reads()->mutable_own_write()->pop_back(); },
      [](auto* m) { m->mutable_guard_values()->mutable_type()->push_back('\1'); },
      [](auto* m) { m->mutable_outcome()->at(1) = '\1'; },  // a guard value that belongs to nobody
  };
  for (std::size_t i = 0; i < spoilers.size(); ++i) {
    Results results;
    std::vector<std::uint32_t> fresh;
    results.columns().reset(3);
    auto m = mixed();
    spoilers[i](m.get());
    EXPECT_EQ(results.columns().add(std::move(m), &fresh).code, ErrorCode::internal) << "spoiler " << i;
    EXPECT_TRUE(fresh.empty());
    EXPECT_EQ(results.outcome(0), Outcome::unknown);
  }
  Results results;
  std::vector<std::uint32_t> fresh;
  results.columns().reset(2);
  EXPECT_EQ(results.columns().add(mixed(), &fresh).code, ErrorCode::internal) << "more answers than transactions";
}

TEST(Results, RowsBecomeTheSameViews) {
  auto rows = std::make_unique<v1::ResultRows>();
  v1::TransactionResult* row = rows->add_results();
  row->set_index(1);
  row->set_outcome(v1::OUTCOME_GUARD_FAILED);
  row->set_failed_in(v1::FAILED_IN_GUARDS);
  row->set_failed_index(2);
  row->mutable_guard_value()->set_key("g");
  row->mutable_guard_value()->mutable_value()->set_integer(4);
  row->add_reads()->set_own_write(true);
  row->add_reads()->mutable_value()->set_bytes("b");
  row->set_version(77);
  Results results;
  std::vector<std::uint32_t> fresh;
  results.columns().reset(2);
  ASSERT_FALSE(results.columns().add(std::move(rows), &fresh));
  EXPECT_EQ(results.outcome(0), Outcome::unknown);
  const ResultView view = results.at(1);
  EXPECT_EQ(view.outcome, Outcome::guard_failed);
  EXPECT_EQ(view.failed_index, 2u);
  EXPECT_EQ(view.version, 77u);
  EXPECT_EQ(view.guard_value->value, ValueView{std::int64_t{4}});
  ASSERT_EQ(results.read_count(1), 2u);
  EXPECT_EQ(results.read(1, 0).version, std::nullopt);
  EXPECT_EQ(results.read(1, 1).value, ValueView{std::string_view("b")});
  auto wrong = std::make_unique<v1::ResultRows>();
  wrong->add_results()->set_index(2);
  EXPECT_EQ(results.columns().add(std::move(wrong), &fresh).code, ErrorCode::internal);
}

}  // namespace
}  // namespace kilokv::client
