// The transaction of each movement, as its history line tells it.
#include "client/bank/ledger.hpp"

#include <gtest/gtest.h>

#include "kilokv/history.hpp"
#include "tests/support/json.hpp"

namespace kilokv::bank {
namespace {

Json line_of(const Movement& movement) {
  MovementWriter writer;
  client::Batch batch;
  writer.append(movement, "id", &batch);
  std::string line;
  client::append_history(batch, client::Results(), 0, {}, &line);
  return Json::parse(line);
}

Movement transfer(std::uint64_t wait_us) {
  Movement movement;
  movement.kind = Kind::transfer;
  movement.account = "alice";
  movement.counterpart = "bob";
  movement.amount = 12'34;
  movement.wait_us = wait_us;
  return movement;
}

TEST(Ledger, ATransferMovesTheMoneyAndWritesBothStatements) {
  const Json line = line_of(transfer(0));
  ASSERT_EQ(line["guards"].size(), 3u);
  EXPECT_EQ(line["guards"][0], Json::parse(R"({"key": "bank/account/alice", "is": "exists", "when_false": "fail"})"));
  EXPECT_EQ(line["guards"][1]["key"], "bank/account/bob");
  EXPECT_EQ(line["guards"][2]["is"], "ge");
  EXPECT_EQ(line["guards"][2]["value"], 1'234);
  EXPECT_EQ(line["guards"][2]["when_false"], "fail");
  ASSERT_EQ(line["then"].size(), 4u);
  EXPECT_EQ(line["then"][0]["delta"], -1'234);
  EXPECT_EQ(line["then"][1]["key"], "bank/entry/alice/id/transfer/bob");
  EXPECT_EQ(line["then"][1]["value"], -1'234);
  EXPECT_EQ(line["then"][2]["delta"], 1'234);
  EXPECT_EQ(line["then"][3]["key"], "bank/entry/bob/id/transfer/alice");
  EXPECT_EQ(line["then"][3]["value"], 1'234);
}

TEST(Ledger, WaitingAndPrecedence) {
  EXPECT_EQ(line_of(transfer(3'000'000))["guards"][2]["when_false"], "wait");
  EXPECT_EQ(line_of(transfer(3'000'000))["wait_timeout_ms"], 3'000);
  EXPECT_EQ(line_of(transfer(0))["precedence"], 1);
  Movement deposit;
  deposit.account = "alice";
  deposit.amount = 5;
  const Json line = line_of(deposit);
  EXPECT_EQ(line["precedence"], 0);
  EXPECT_EQ(line["then"][1]["key"], "bank/entry/alice/id/deposit/cash");
}

TEST(Ledger, OpeningNeedsAnAbsentAccount) {
  Movement opened;
  opened.kind = Kind::opened;
  opened.account = "alice";
  EXPECT_EQ(line_of(opened)["guards"][0]["is"], "absent");
}

TEST(Ledger, Refusals) {
  const auto refused = [](Kind kind, std::uint32_t guard) {
    Movement movement = transfer(0);
    movement.kind = kind;
    client::ResultView result;
    result.outcome = client::Outcome::guard_failed;
    result.failed_index = guard;
    return refusal_of(movement, result);
  };
  EXPECT_EQ(refused(Kind::opened, 0), Refusal::account_exists);
  EXPECT_EQ(refused(Kind::deposit, 0), Refusal::no_such_account);
  EXPECT_EQ(refused(Kind::withdrawal, 1), Refusal::insufficient);
  EXPECT_EQ(refused(Kind::transfer, 1), Refusal::no_such_counterpart);
  EXPECT_EQ(refused(Kind::transfer, 2), Refusal::insufficient);
  client::ResultView result;
  result.outcome = client::Outcome::guard_failed;
  result.failed_index = 2;
  result.guard_value = client::ReadView{.key = "bank/account/alice", .value = std::int64_t{300}, .version = 1};
  EXPECT_EQ(explain(transfer(0), result), "alice has 3.00, 12.34 needed");
}

TEST(Ledger, EntryKeys) {
  const auto entry = parse_entry_key("bank/entry/alice/1763635000123456-0000002a-7/transfer/bob");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->account, "alice");
  EXPECT_EQ(entry->kind, "transfer");
  EXPECT_EQ(entry->counterpart, "bob");
  EXPECT_EQ(entry_time_us(entry->id), 1'763'635'000'123'456);
  for (const char* bad :
       {"bank/account/alice", "bank/entry/alice", "bank/entry/alice/x/transfer", "bank/entry//x/transfer/bob",
        "bank/entry/alice/x/transfer/", "bank/entry/alice/x/transfer/bob/more"}) {
    EXPECT_FALSE(parse_entry_key(bad)) << bad;
  }
}

TEST(Ledger, IdsAreUniqueAndSortByTime) {
  EntryIds ids(42);
  const std::string first(ids.next(1'763'635'000'123'456)), second(ids.next(1'763'635'000'123'456)),
      third(ids.next(1'763'635'000'123'457));
  EXPECT_EQ(first, "1763635000123456-0000002a-0");
  EXPECT_NE(first, second);
  EXPECT_LT(second, third);
}

TEST(Ledger, AccountNames) {
  for (const char* good : {"a", "Alice.B_c-9"}) EXPECT_TRUE(valid_account(good)) << good;
  EXPECT_TRUE(valid_account(std::string(64, 'a')));
  EXPECT_FALSE(valid_account(std::string(65, 'a')));
  for (const char* bad : {"", "a/b", "a b", "\xc3\xa9"}) EXPECT_FALSE(valid_account(bad)) << bad;
}

}  // namespace
}  // namespace kilokv::bank
