// The referee accepts a right execution and finds every planted error.

#include "engine/referee/referee.hpp"

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>

#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

// Places in the batch of make_batch().
enum Transaction : std::uint32_t { kTransfer, kWithdrawal, kDeposit, kRefused, kBytes, kRange, kOverflow, kWaits };
constexpr std::uint32_t kTransactions = 8;
enum Operation : std::uint32_t { kTransferGet, kTransferSource, kTransferTarget };

void add_movement(ColumnsBuilder* builder, OnFalse on_false, std::string_view from, std::string_view to) {
  builder->begin();
  const std::uint32_t source = builder->key(from), target = builder->key(to);
  builder->guard(GuardKind::greater_equal, on_false, source, 50);
  builder->op(OpKind::add, source, Operand::integer, -50);
  builder->op(OpKind::add, target, Operand::integer, 50);
  builder->end();
}

// A transfer with a read; a withdrawal that waits for the deposit after it; a refused one with an else-list; bytes; a
// range; an overflow; one that waits beyond its batch.
void make_batch(RefereeScenario* scenario) {
  for (const char* key : {"alice", "bob", "dave"}) scenario->load(key, 100);
  scenario->load("carol", 0);
  ColumnsBuilder& builder = scenario->builder;
  builder.begin();
  const std::uint32_t alice = builder.key("alice");
  builder.guard(GuardKind::greater_equal, OnFalse::fail, alice, 10);
  builder.op(OpKind::get, alice);
  builder.op(OpKind::add, alice, Operand::integer, -10);
  builder.op(OpKind::add, builder.key("bob"), Operand::integer, 10);
  builder.end();
  add_movement(&builder, OnFalse::wait, "carol", "dave");
  add_movement(&builder, OnFalse::fail, "dave", "carol");
  builder.begin();
  builder.guard(GuardKind::absent, OnFalse::fail, builder.key("bob"), 0);
  builder.begin_else();
  builder.op(OpKind::get, builder.key("bob"));
  builder.end();
  builder.begin();
  const std::uint32_t note = builder.key("note");
  builder.op(OpKind::put, note, Operand::bytes, builder.value("hello"));
  builder.op(OpKind::get, note);
  builder.end();
  builder.begin();
  builder.range_op(OpKind::range_get, "a", "c", 10);
  builder.end();
  builder.begin();
  builder.op(OpKind::put, builder.key("alice"), Operand::integer, 1);
  builder.op(OpKind::add, builder.key("alice"), Operand::integer, INT64_MAX);
  builder.end();
  builder.begin(0, 1000);
  builder.guard(GuardKind::exists, OnFalse::wait, builder.key("nobody"), 0);
  builder.end();
  scenario->execute();
}

constexpr RefereeMode kModes[] = {RefereeMode::deterministic, RefereeMode::any_order,
                                  RefereeMode::any_order_with_waste};

void drop_last_write(WriteColumns* writes) {
  writes->rank.pop_back();
  writes->type.pop_back();
  writes->word.pop_back();
  writes->key_end.pop_back();
  writes->key_bytes.resize(writes->key_end.back());
}

// All modes must refuse the scenario, with `field` in the message.
bool caught(const RefereeScenario& scenario, const std::string& field) {
  for (const RefereeMode mode : kModes) {
    const Status status = scenario.check(mode);
    if (!status.ok() && status.message().find(field) != std::string::npos) continue;
    std::fprintf(stderr, "not caught: %s; the referee said: %s\n", field.c_str(), status.message().c_str());
    return false;
  }
  return true;
}

TEST(right_execution_is_accepted_in_all_modes) {
  RefereeScenario scenario;
  make_batch(&scenario);
  EXPECT_EQ(scenario.columns.size(), std::size_t{kTransactions});
  for (const RefereeMode mode : kModes) {
    ModelState after;
    EXPECT_EQ(scenario.check(mode, &after).message(), "");
    EXPECT_EQ(check_state(after, *scenario.engine).message(), "");
  }
  EXPECT_EQ(scenario.results.rank[kWithdrawal], kTransactions + kWithdrawal);
}

TEST(flipped_outcome_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.outcome[kTransfer] = static_cast<std::uint8_t>(Outcome::guard_failed);
  EXPECT_TRUE(caught(scenario, "transaction 0 (rank 0): outcome: expected COMMITTED, got GUARD_FAILED"));
}

TEST(wrong_read_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.op_cell[kTransferGet].word = 99;
  EXPECT_TRUE(caught(scenario, "transaction 0 (rank 0): then[0] value: expected 100, got 99"));
}

TEST(wrong_version_of_a_read_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.op_cell[kTransferGet].tag = make_tag(2, ValueType::integer);
  EXPECT_TRUE(caught(scenario, "then[0] value version: expected 1, got 2"));
}

TEST(wrong_version_of_a_write_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.op_cell[kTransferSource].tag = make_tag(101, ValueType::integer);
  EXPECT_TRUE(caught(scenario, "then[1] value version: expected 100, got 101"));
}

TEST(own_write_not_marked_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  const std::uint32_t get = scenario.columns.then_begin(kBytes) + 1;
  scenario.results.op_flags[get] = 0;
  EXPECT_TRUE(caught(scenario, "then[1] own write: expected 1, got 0"));
}

TEST(operation_that_says_it_did_not_write_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.op_flags[kTransferTarget] = 0;
  EXPECT_TRUE(caught(scenario, "then[2] wrote: expected 1, got 0"));
}

TEST(transaction_that_says_it_did_not_write_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.wrote[kDeposit] = 0;
  EXPECT_TRUE(caught(scenario, "wrote: expected 1, got 0"));
}

TEST(wrong_deciding_guard_and_its_value_are_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  const auto index = scenario.results.failed_index[kRefused];
  scenario.results.failed_index[kRefused] = 1;
  EXPECT_TRUE(caught(scenario, "failed_index: expected 0, got 1"));
  scenario.results.failed_index[kRefused] = index;
  scenario.results.guard_cell[kRefused].word = 5;
  EXPECT_TRUE(caught(scenario, "guard value: expected 110, got 5"));
}

TEST(wrong_place_of_an_overflow_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.failed_in[kOverflow] = static_cast<std::uint8_t>(FailedIn::guards);
  EXPECT_TRUE(caught(scenario, "failed_in: expected then, got guards"));
}

TEST(missing_write_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  drop_last_write(&scenario.writes);
  EXPECT_TRUE(caught(scenario, "number of writes: expected 7, got 6"));
}

TEST(falsified_write_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.writes.word[0] += 1;
  EXPECT_TRUE(caught(scenario, "write 0: expected rank 0, key alice, 90, got rank 0, key alice, 91"));
}

TEST(write_applied_twice_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  WriteColumns& writes = scenario.writes;
  writes.rank.push_back(writes.rank.back());
  writes.type.push_back(writes.type.back());
  writes.word.push_back(writes.word.back());
  const std::string key(writes.key(writes.size() - 2));
  writes.key_bytes.insert(writes.key_bytes.end(), key.begin(), key.end());
  writes.key_end.push_back(static_cast<std::uint32_t>(writes.key_bytes.size()));
  EXPECT_TRUE(caught(scenario, "number of writes: expected 7, got 8"));
}

TEST(batch_applied_twice_to_the_state_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  ModelState after;
  EXPECT_TRUE(scenario.check(RefereeMode::deterministic, &after).ok());
  scenario.header = {2, 2'000'000, scenario.results.next_version};
  KILOKV_CHECK(
      scenario.engine->execute(scenario.header, scenario.columns, scenario.expires, &scenario.results, &scenario.writes)
          .ok());
  const std::string message = check_state(after, *scenario.engine).message();
  EXPECT_EQ(message.substr(0, 58), "state, key alice: expected 90 of version 100, got 80 of ve");
}

// Two accounts that the batch names, one that it does not, and a key that it makes.
void make_small_batch(RefereeScenario* scenario) {
  for (const char* key : {"alice", "bob", "eve"}) scenario->load(key, 100);
  add_movement(&scenario->builder, OnFalse::fail, "alice", "bob");
  scenario->builder.begin();
  scenario->builder.op(OpKind::put, scenario->builder.key("frank"), Operand::integer, 7);
  scenario->builder.end();
}

TEST(records_that_a_batch_names_are_enough_to_check_it) {
  RefereeScenario scenario;
  make_small_batch(&scenario);
  const ModelState before = model_of_keys(*scenario.engine, scenario.columns);
  EXPECT_EQ(before.records.size(), 2u);  // eve is not named, and frank is still to come
  EXPECT_TRUE(before.records.contains("alice") && before.records.contains("bob"));
  scenario.execute();
  scenario.model = before;
  ModelState after;
  EXPECT_TRUE(scenario.check(RefereeMode::deterministic, &after).ok());
  EXPECT_TRUE(check_keys(after, *scenario.engine, scenario.columns).ok());
  scenario.load("eve", 1);  // nobody named it
  EXPECT_TRUE(check_keys(after, *scenario.engine, scenario.columns).ok());
}

TEST(record_that_differs_from_what_the_batch_left_is_caught) {
  RefereeScenario scenario;
  make_small_batch(&scenario);
  scenario.execute();
  ModelState after;
  EXPECT_TRUE(scenario.check(RefereeMode::deterministic, &after).ok());
  after.records.erase("eve");
  const auto verdict = [&] { return check_keys(after, *scenario.engine, scenario.columns).message(); };
  EXPECT_EQ(verdict(), "");
  const ModelRecord frank = after.records["frank"];
  after.records["frank"].value = std::int64_t{8};
  EXPECT_EQ(verdict().substr(0, 16), "state, key frank");
  after.records.erase("frank");
  EXPECT_EQ(verdict().substr(0, 37), "state, key frank: expected no record,");
  after.records["frank"] = frank;
  after.records["gina"] = frank;
  EXPECT_EQ(verdict().substr(0, 15), "state, key gina");
}

TEST(wrongly_postponed_transaction_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.outcome[kWithdrawal] = static_cast<std::uint8_t>(Outcome::postponed);
  scenario.results.failed_in[kWithdrawal] = static_cast<std::uint8_t>(FailedIn::guards);
  scenario.results.failed_index[kWithdrawal] = 0;
  scenario.results.wrote[kWithdrawal] = 0;
  drop_last_write(&scenario.writes);
  drop_last_write(&scenario.writes);
  EXPECT_TRUE(caught(scenario, "outcome: expected COMMITTED, got POSTPONED"));
}

TEST(transaction_that_ran_while_its_wait_guard_was_false_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.outcome[kWaits] = static_cast<std::uint8_t>(Outcome::committed);
  scenario.results.rank[kWaits] = kWaits;
  EXPECT_TRUE(caught(scenario, "transaction 7"));
}

TEST(range_with_a_wrong_pair_is_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.pair_key_bytes[0] = 'A';
  EXPECT_TRUE(caught(scenario, "then[0] pair 0 key: expected alice, got Alice"));
  scenario.results.pair_key_bytes[0] = 'a';
  scenario.results.range_end[0] -= 1;
  EXPECT_TRUE(caught(scenario, "then[0] pairs: expected 2, got 1"));
}

TEST(wrong_passes_and_next_version_are_caught) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.next_version += 1;
  EXPECT_TRUE(caught(scenario, "next_version: expected 124, got 125"));
  scenario.results.next_version -= 1;
  scenario.results.passes += 1;
  EXPECT_TRUE(!scenario.check().ok());
}

TEST(ragged_results_are_refused) {
  RefereeScenario scenario;
  make_batch(&scenario);
  scenario.results.op_cell.pop_back();
  EXPECT_TRUE(caught(scenario, "lengths"));
}

// Links that each wait for the one after it, so that each pass finishes one. Those with an even number may wait beyond
// their batch.
void add_chain(std::uint32_t links, ColumnsBuilder* builder) {
  for (std::uint32_t i = 0; i < links; ++i) {
    builder->begin(0, i % 2 == 0 ? 1000 : 0);
    if (i + 1 < links) {
      builder->guard(GuardKind::exists, OnFalse::wait, builder->key("link" + std::to_string(i + 1)), 0);
    }
    builder->op(OpKind::put, builder->key("link" + std::to_string(i)), Operand::integer, 1);
    builder->end();
  }
}
constexpr std::uint32_t kLongChain = kWaitPassesMax + 4, kShortChain = 3;

// The limit of passes cuts the chain off.
TEST(chain_beyond_the_limit_of_passes_is_accepted_and_its_tampering_caught) {
  RefereeScenario scenario;
  add_chain(kLongChain, &scenario.builder);
  scenario.execute();
  EXPECT_EQ(scenario.results.passes, kWaitPassesMax);
  EXPECT_EQ(static_cast<int>(scenario.results.outcome[0]), static_cast<int>(Outcome::postponed));
  EXPECT_EQ(static_cast<int>(scenario.results.outcome[1]), static_cast<int>(Outcome::wait_expired));
  for (const RefereeMode mode : kModes) EXPECT_EQ(scenario.check(mode).message(), "");
  scenario.results.rank[1] = 1;
  EXPECT_TRUE(caught(scenario, "rank"));
}

// Says of the transaction that one of its guards, whose key is absent, has left it over.
void claim_left_over(std::uint32_t t, std::uint32_t guard, bool has_expired, RefereeScenario* scenario) {
  BatchResults& results = scenario->results;
  results.outcome[t] = static_cast<std::uint8_t>(has_expired ? Outcome::wait_expired : Outcome::postponed);
  results.failed_in[t] = static_cast<std::uint8_t>(FailedIn::guards);
  results.failed_index[t] = guard;
  results.guard_cell[t] = Cell{};
  results.rank[t] = results.passes * static_cast<std::uint32_t>(scenario->columns.size()) + t;
}

using AddGuards = void (*)(ColumnsBuilder* builder);

// After a chain comes a transaction with these guards that writes nothing. It is said to be left over, by the guard
// `claimed`. All modes must refuse that, and tell what was to be expected.
void expect_not_left_over(AddGuards add_guards, std::uint32_t claimed, const char* expected) {
  for (const std::uint32_t links : {kShortChain, kLongChain}) {
    for (const bool has_expired : {false, true}) {
      RefereeScenario scenario;
      scenario.load("there", 7);
      KILOKV_CHECK(scenario.engine->load("bytes", 1, ValueType::bytes, 0, "text").ok());
      add_chain(links, &scenario.builder);
      scenario.builder.begin(0, has_expired ? 0 : 1000);
      add_guards(&scenario.builder);
      scenario.builder.op(OpKind::get, scenario.builder.key("there"));
      scenario.builder.end();
      scenario.execute();
      EXPECT_EQ(scenario.results.passes, std::min(links, kWaitPassesMax));
      for (const RefereeMode mode : kModes) EXPECT_EQ(scenario.check(mode).message(), "");
      claim_left_over(links, claimed, has_expired, &scenario);
      EXPECT_TRUE(caught(scenario, std::string("outcome: expected ") + expected + ", got " +
                                       (has_expired ? "WAIT_EXPIRED" : "POSTPONED")));
    }
  }
}

TEST(left_over_without_a_guard_is_caught) {
  expect_not_left_over([](ColumnsBuilder*) {}, 0, "COMMITTED");
}
TEST(left_over_by_a_wait_guard_that_holds_is_caught) {
  expect_not_left_over([](ColumnsBuilder* b) { b->guard(GuardKind::exists, OnFalse::wait, b->key("there"), 0); }, 0,
                       "COMMITTED");
}
TEST(left_over_by_a_fail_guard_is_caught) {
  expect_not_left_over([](ColumnsBuilder* b) { b->guard(GuardKind::exists, OnFalse::fail, b->key("nobody"), 0); }, 0,
                       "GUARD_FAILED");
}
TEST(left_over_by_a_fail_guard_that_holds_is_caught) {
  expect_not_left_over([](ColumnsBuilder* b) { b->guard(GuardKind::exists, OnFalse::fail, b->key("there"), 0); }, 0,
                       "COMMITTED");
}
TEST(left_over_by_a_wait_guard_that_comes_after_the_deciding_one_is_caught) {
  expect_not_left_over(
      [](ColumnsBuilder* b) {
        b->guard(GuardKind::exists, OnFalse::fail, b->key("nobody"), 0);
        b->guard(GuardKind::exists, OnFalse::wait, b->key("nobody"), 0);
      },
      1, "GUARD_FAILED");
}
TEST(left_over_by_a_guard_of_the_wrong_type_is_caught) {
  expect_not_left_over([](ColumnsBuilder* b) { b->guard(GuardKind::greater, OnFalse::wait, b->key("bytes"), 0); }, 0,
                       "TYPE_MISMATCH");
}

// Links 0 to 3 are left over.
TEST(left_over_on_its_last_try_and_not_are_told_apart) {
  RefereeScenario scenario;
  add_chain(kLongChain, &scenario.builder);
  scenario.execute();
  std::swap(scenario.expires[0], scenario.expires[1]);
  EXPECT_TRUE(caught(scenario, "transaction 0 (rank 320): outcome: expected WAIT_EXPIRED, got POSTPONED"));
  scenario.expires[0] = 0;
  EXPECT_TRUE(caught(scenario, "transaction 1 (rank 321): outcome: expected POSTPONED, got WAIT_EXPIRED"));
}

// The first one expires, and its else-operations let the second one commit in the pass of last tries.
TEST(tampered_last_tries_are_caught) {
  RefereeScenario scenario;
  ColumnsBuilder& b = scenario.builder;
  b.begin(0, 0, true);
  b.guard(GuardKind::exists, OnFalse::wait, b.key("nobody"), 0);
  b.begin_else();
  b.op(OpKind::add, b.key("gave up"), Operand::integer, 1);
  b.end();
  b.begin();
  b.guard(GuardKind::exists, OnFalse::wait, b.key("gave up"), 0);
  b.op(OpKind::get, b.key("gave up"));
  b.end();
  scenario.execute();
  const auto says = [&](const std::string& expected) {
    const std::string message = scenario.check().message();
    EXPECT_TRUE(message.find(expected) != std::string::npos);
    if (message.find(expected) == std::string::npos) std::fprintf(stderr, "%s\n", message.c_str());
  };
  EXPECT_EQ(scenario.check().message(), "");
  const auto tamper = [&](auto* field, auto value, const std::string& expected) {
    const auto before = std::exchange(*field, value);
    says(expected);
    *field = before;
  };
  BatchResults& results = scenario.results;
  const auto number = [](Outcome outcome) { return static_cast<std::uint8_t>(outcome); };
  tamper(&results.outcome[0], number(Outcome::guard_failed), "outcome: expected WAIT_EXPIRED, got GUARD_FAILED");
  tamper(&results.outcome[1], number(Outcome::wait_expired), "outcome: expected COMMITTED, got WAIT_EXPIRED");
  tamper(&results.wrote[0], std::uint8_t{0}, "wrote: expected 1, got 0");
  tamper(&results.op_cell[0].word, std::uint64_t{2}, "else[0] value: expected 1, got 2");
  tamper(&results.rank[1], 1u, "rank: expected 3, got 1");
  tamper(&results.passes, 1u, "passes: expected 2, got 1");
  tamper(&results.next_version, Version{102}, "next_version: expected 104, got 102");
  tamper(&scenario.expires[0], std::uint8_t{0}, "outcome: expected POSTPONED, got WAIT_EXPIRED");
  tamper(&scenario.columns.expire_runs_else[0], std::uint8_t{0}, "wrote: expected 0, got 1");
}

TEST(left_over_with_wrong_details_is_caught) {
  RefereeScenario scenario;
  add_chain(kLongChain, &scenario.builder);
  scenario.execute();
  BatchResults& results = scenario.results;
  for (const std::uint32_t t : {0u, 1u}) {
    results.guard_cell[t] = {1, make_tag(100, ValueType::integer)};
    EXPECT_TRUE(caught(scenario, "guard value: expected absent, got 1"));
    results.guard_cell[t] = {};
    results.failed_index[t] = 1;
    EXPECT_TRUE(caught(scenario, "failed_index: expected 0, got 1"));
    results.failed_index[t] = 0;
    results.failed_in[t] = static_cast<std::uint8_t>(FailedIn::none);
    EXPECT_TRUE(caught(scenario, "failed_in: expected guards, got none"));
    results.failed_in[t] = static_cast<std::uint8_t>(FailedIn::guards);
    results.wrote[t] = 1;
    EXPECT_TRUE(caught(scenario, "wrote: expected 0, got 1"));
    results.wrote[t] = 0;
  }
  for (const RefereeMode mode : kModes) EXPECT_EQ(scenario.check(mode).message(), "");
}

// Its guard is true since the second pass, and it was not tried again.
TEST(left_over_by_a_guard_that_was_true_in_the_last_pass_is_caught) {
  RefereeScenario scenario;
  add_chain(kLongChain, &scenario.builder);
  ColumnsBuilder& builder = scenario.builder;
  builder.begin(0, 1000);
  builder.guard(GuardKind::exists, OnFalse::wait, builder.key("link" + std::to_string(kLongChain - 2)), 0);
  builder.end();
  scenario.execute();
  claim_left_over(kLongChain, 0, false, &scenario);
  for (const RefereeMode mode : {RefereeMode::deterministic, RefereeMode::any_order}) {
    const std::string message = scenario.check(mode).message();
    EXPECT_TRUE(message.find("outcome: expected COMMITTED, got POSTPONED") != std::string::npos);
  }
  // Where ranks were wasted, the last pass may have begun with the batch.
  EXPECT_EQ(scenario.check(RefereeMode::any_order_with_waste).message(), "");
}

// No limit has cut the batch off: a further pass would have run it.
TEST(left_over_by_a_guard_that_is_true_in_the_end_is_caught) {
  RefereeScenario scenario;
  add_chain(kShortChain, &scenario.builder);
  scenario.builder.begin(0, 1000);
  scenario.builder.guard(GuardKind::exists, OnFalse::wait, scenario.builder.key("link0"), 0);
  scenario.builder.end();
  scenario.execute();
  EXPECT_EQ(scenario.results.passes, kShortChain);
  claim_left_over(kShortChain, 0, false, &scenario);
  EXPECT_TRUE(caught(scenario, "outcome: expected COMMITTED, got POSTPONED"));
}

// In the last pass the first transaction opens a gate, and the last one of the four closes it again. So the guards of
// those between are false in the last pass alone, and neither at its beginning nor at its end.
TEST(left_over_by_a_guard_that_was_false_for_a_moment_of_the_last_pass_is_accepted) {
  RefereeScenario scenario;
  ColumnsBuilder& builder = scenario.builder;
  const std::string late = "link" + std::to_string(kLongChain - kWaitPassesMax + 1);  // of the pass before
  const auto begin = [&] {
    builder.begin(0, 1000);
    builder.guard(GuardKind::exists, OnFalse::wait, builder.key(late), 0);
  };
  begin();
  builder.op(OpKind::put, builder.key("gate"), Operand::integer, 1);
  builder.end();
  begin();
  builder.guard(GuardKind::absent, OnFalse::wait, builder.key("gate"), 0);
  builder.end();
  begin();
  builder.guard(GuardKind::equal, OnFalse::wait, builder.key("nobody"), 0, builder.key("gate"));
  builder.end();
  begin();
  builder.op(OpKind::del, builder.key("gate"));
  builder.end();
  add_chain(kLongChain, &builder);
  scenario.execute();
  EXPECT_EQ(scenario.results.passes, kWaitPassesMax);
  for (const std::uint32_t t : {1u, 2u}) {
    EXPECT_EQ(static_cast<int>(scenario.results.outcome[t]), static_cast<int>(Outcome::postponed));
    EXPECT_EQ(scenario.results.failed_index[t], 1u);
  }
  for (const RefereeMode mode : kModes) EXPECT_EQ(scenario.check(mode).message(), "");
}
// The same with a range. It is unchanged until the last pass; later in that pass another guard comes to decide.
TEST(left_over_by_a_range_for_a_moment_of_the_last_pass_is_accepted) {
  RefereeScenario scenario;
  ColumnsBuilder& builder = scenario.builder;
  const std::string late = "link" + std::to_string(kLongChain - kWaitPassesMax + 1);
  for (const char* written : {"gate", "", "closed"}) {
    builder.begin(0, 1000);
    builder.guard(GuardKind::exists, OnFalse::wait, builder.key(late), 0);
    if (*written != 0) {
      builder.op(OpKind::put, builder.key(written), Operand::integer, 1);
    } else {
      builder.guard(GuardKind::absent, OnFalse::fail, builder.key("closed"), 0);
      builder.range_guard(GuardKind::range_unchanged, OnFalse::wait, "gate", "gates", 0);
    }
    builder.end();
  }
  add_chain(kLongChain, &builder);
  scenario.execute();
  EXPECT_EQ(static_cast<int>(scenario.results.outcome[1]), static_cast<int>(Outcome::postponed));
  EXPECT_EQ(scenario.results.failed_index[1], 2u);
  for (const RefereeMode mode : kModes) EXPECT_EQ(scenario.check(mode).message(), "");
}

// Many transactions wait for a value of a key that as many others write. Each write could explain each of those that
// wait. But each of them has seen one version, so that only one state has to be looked at.
TEST(many_that_wait_for_a_hot_key_take_no_quadratic_time) {
  constexpr int kMany = 4000;
  RefereeScenario scenario;
  ColumnsBuilder& builder = scenario.builder;
  add_chain(kLongChain, &builder);
  for (int i = 0; i < kMany; ++i) {
    builder.begin(0, 1000);
    if (i % 2 == 0) builder.guard(GuardKind::greater_equal, OnFalse::wait, builder.key("hot"), 0);
    builder.guard(GuardKind::equal, OnFalse::wait, builder.key("hot"), -1);
    builder.end();
    builder.begin();
    builder.op(OpKind::add, builder.key("hot"), Operand::integer, 1);
    builder.end();
  }
  scenario.execute();
  EXPECT_EQ(scenario.results.passes, kWaitPassesMax);
  const std::clock_t begin = std::clock();
  for (const RefereeMode mode : kModes) EXPECT_EQ(scenario.check(mode).message(), "");
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (seconds > 5) FAIL("the checks took " + std::to_string(seconds) + " s");
}

// Two blind writes of one key, run in the order 1, 0.
void make_swapped(RefereeScenario* scenario) {
  for (const std::int64_t value : {2, 1}) {
    scenario->builder.begin();
    scenario->builder.op(OpKind::put, scenario->builder.key("k"), Operand::integer, value);
    scenario->builder.end();
  }
  scenario->execute();
  std::swap(scenario->columns.op_value[0], scenario->columns.op_value[1]);
  std::swap(scenario->results.rank[0], scenario->results.rank[1]);
  std::swap(scenario->results.op_cell[0], scenario->results.op_cell[1]);
}

// What comes after the left-over ones is looked at, too.
TEST(wrong_writes_beside_left_over_transactions_are_caught) {
  RefereeScenario scenario;
  add_chain(kLongChain, &scenario.builder);
  scenario.execute();
  drop_last_write(&scenario.writes);
  EXPECT_TRUE(caught(scenario, "number of writes: expected 16, got 15"));
}

TEST(a_strategy_that_wasted_ranks_is_held_to_less) {
  ExecutionReport report;
  EXPECT_TRUE(referee_mode(report) == RefereeMode::deterministic);
  report.any_order = true;
  EXPECT_TRUE(referee_mode(report) == RefereeMode::any_order);
  report.counters.add("wasted_tickets", 1);
  EXPECT_TRUE(referee_mode(report) == RefereeMode::any_order_with_waste);
}

TEST(other_serial_order_is_accepted_in_any_order_mode_only) {
  RefereeScenario scenario;
  make_swapped(&scenario);
  EXPECT_EQ(scenario.check(RefereeMode::any_order).message(), "");
  EXPECT_TRUE(!scenario.check(RefereeMode::deterministic).ok());
}

TEST(order_that_does_not_explain_the_results_is_caught) {
  RefereeScenario scenario;
  make_swapped(&scenario);
  std::swap(scenario.results.rank[0], scenario.results.rank[1]);
  EXPECT_TRUE(caught(scenario, "expected"));
}

TEST(shared_rank_and_mixed_precedence_are_caught_in_any_order_mode) {
  RefereeScenario scenario;
  make_swapped(&scenario);
  scenario.results.rank[0] = 0;
  EXPECT_EQ(scenario.check(RefereeMode::any_order).message(),
            "batch 1, transaction 1: rank: expected a rank that no other transaction has, got 0");
  scenario.results.rank[0] = 1;
  scenario.columns.precedence[1] = 1;
  EXPECT_EQ(scenario.check(RefereeMode::any_order).message(),
            "batch 1, transaction 0: rank: expected before the higher precedence classes of its pass, got 1");
}

}  // namespace
}  // namespace kilokv::engine
