// Random parks, writes, deadlines, cancels and failures, compared with a simple model: nobody is forgotten, nobody runs
// without a reason, and nobody runs twice.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/core/environment.hpp"
#include "server/core/options.hpp"
#include "server/core/request.hpp"
#include "tests/unit/core/waiting/waiting_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr int kKeys = 6;

struct Wish {  // what the model knows of a parked transaction
  int key = 0;
  std::int64_t amount = 0;
  TimeUs deadline_us = 0;
  bool is_woken = false;  // it was covered at a moment when it could be looked at
};

class WaitingRandomTest : public WaitingTest, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  static std::string name(int key) { return "k" + std::to_string(key); }
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void park_one() {
    Wish wish;
    wish.key = static_cast<int>(draw(kKeys));
    wish.amount = amounts_[static_cast<std::size_t>(wish.key)] - 2 + static_cast<std::int64_t>(draw(8));
    wish.deadline_us = now_us_ + 1 + static_cast<TimeUs>(draw(40));
    Parked parked;
    parked.client = draw(5) == 0 ? nullptr : clients_[draw(clients_.size())].get();
    parked.arrival = ++arrivals_;
    parked.deadline_us = wish.deadline_us;
    parked.part = draw(3) == 0 ? kWholeBatch : 1 + draw(kWholeBatch / 4);
    if (draw(2) == 0) {
      parked.session = SessionId{};
      parked.request = 1 + draw(4);
      parked.index = static_cast<std::uint32_t>(draw(3));
    }
    const Result<std::uint64_t> id = tested_.park(withdrawal(name(wish.key), wish.amount), 0, std::move(parked));
    ASSERT_TRUE(id.ok());
    ASSERT_FALSE(wishes_.contains(*id));
    wishes_[*id] = wish;
  }
  // A transaction may wake from now on if the new amount is enough for it.
  void write_some() {
    std::set<int> keys;
    for (std::uint64_t i = draw(3); i < 3; ++i) keys.insert(static_cast<int>(draw(kKeys)));
    table.run([&](engine::ColumnsBuilder& b) {
      b.begin();
      for (const int key : keys) {
        const std::int64_t delta = static_cast<std::int64_t>(draw(7)) - 3;
        amounts_[static_cast<std::size_t>(key)] += delta;
        b.op(engine::OpKind::add, b.key(name(key)), engine::Operand::integer, delta);
      }
      b.end();
    });
    tested_.end_batch(table.engine()->before_images());
    note_covered();
  }
  bool is_covered(const Wish& wish) const { return amounts_[static_cast<std::size_t>(wish.key)] >= wish.amount; }
  void note_covered() {
    for (auto& [id, wish] : wishes_) wish.is_woken = wish.is_woken || is_covered(wish);
  }
  void look(bool idle) { tested_.wake_candidates(*table.engine(), table.now().batch, idle); }

  // A batch. `all`: everything that may run does.
  void run_batch(bool all) {
    now_us_ += static_cast<TimeUs>(draw(4));
    std::uint64_t cost = 0;
    std::vector<Parked> ran;
    const auto answer = [&](const Parked& parked) {
      EXPECT_TRUE(wishes_.contains(parked.id));
      if (!all && draw(8) == 0) return draw(4) == 0 ? Waiting::Answer::full : Waiting::Answer::put_off;
      if (!all && cost > 0 && cost + parked.part > kWholeBatch) return Waiting::Answer::put_off;
      cost += parked.part;
      return Waiting::Answer::taken;
    };
    const std::size_t max = all ? SIZE_MAX : 1 + draw(6);
    tested_.hand_out(now_us_, max, answer, [&](const Parked& parked) { ran.push_back(parked); });
    ASSERT_TRUE(
        std::is_sorted(ran.begin(), ran.end(), [](const Parked& a, const Parked& b) { return a.arrival < b.arrival; }));
    for (Parked& parked : ran) end_try(std::move(parked));
    tested_.end_batch({});
  }
  void end_try(Parked parked) {
    const Wish wish = wishes_.at(parked.id);
    ASSERT_FALSE(failed_.contains(parked.request)) << "its request has failed";
    ASSERT_TRUE(wish.is_woken || wish.deadline_us <= now_us_) << "it runs without a reason";
    if (is_covered(wish) || wish.deadline_us <= now_us_) {
      wishes_.erase(parked.id);
      return;
    }
    wishes_[parked.id].is_woken = false;
    const std::uint64_t id = parked.id;
    ASSERT_EQ(*tested_.park(withdrawal(name(wish.key), wish.amount), 0, std::move(parked)), id);
  }
  void cancel_some() {
    const bool has_id = draw(2) == 0 && !wishes_.empty();
    CancelTarget target;
    if (has_id) {
      target.parked_id = std::next(wishes_.begin(), static_cast<std::ptrdiff_t>(draw(wishes_.size())))->first;
    } else {
      target.session = SessionId{};
      target.request = 1 + draw(4);
    }
    tested_.cancel(std::move(target), 0, [](const Result<std::uint64_t>&) {});
    while (tested_.cancels() > 0) {
      const auto cancelled = tested_.take_cancelled(nothing_is_queued, 1 + draw(5));
      ASSERT_TRUE(cancelled);
      for (const Parked& parked : cancelled->parked) {
        ASSERT_FALSE(failed_.contains(parked.request));
        ASSERT_EQ(wishes_.erase(parked.id), 1u);
      }
    }
  }
  // A request fails. It is forgotten at once, or a while later.
  void fail_one() {
    failed_.insert(1 + draw(4));
    if (draw(2) == 0) forget_failed();
  }
  void forget_failed() {
    Ids ids;
    for (std::uint64_t after = 0;;) {
      const Waiting::Visited visited = tested_.visit(after, [&](const Parked& parked) {
        if (failed_.contains(parked.request)) ids.push_back(parked.id);
      });
      if (!visited.has_more) break;
      after = visited.last_id;
    }
    for (const std::uint64_t id : ids) wishes_.erase(id);
    std::size_t looks = SIZE_MAX;
    tested_.forget(ids, &looks);
    std::erase_if(wishes_, [&](const auto& wish) { return !exists(wish.first); });  // dropped when their turn came
    failed_.clear();
  }
  bool exists(std::uint64_t id) {
    const Waiting::List list = tested_.list(id - 1, 1);
    return !list.parked.empty() && list.parked[0].id == id;
  }
  // When all have been looked at, everybody who is covered or due runs.
  void settle() {
    forget_failed();
    while (tested_.has_candidates()) look(true);
    run_batch(/*all=*/true);
    for (const auto& [id, wish] : wishes_) {
      ASSERT_TRUE(exists(id)) << id;
      ASSERT_FALSE(is_covered(wish)) << "forgotten: " << id;
      ASSERT_GT(wish.deadline_us, now_us_) << "its deadline was forgotten: " << id;
    }
    ASSERT_EQ(tested_.parked(), wishes_.size());
    ASSERT_EQ(tested_.awake(), 0u);
    TimeUs earliest = kNever;
    for (const auto& [id, wish] : wishes_) earliest = std::min(earliest, wish.deadline_us);
    ASSERT_EQ(tested_.next_due_us(), earliest);
  }
  void step() {
    switch (draw(10)) {
      case 0:
      case 1:
      case 2: return park_covered_or_not();
      case 3:
      case 4: return write_some();
      case 5: return look(draw(2) == 0);
      case 6:
      case 7: return run_batch(false);
      case 8: return draw(4) == 0 ? cancel_some() : park_covered_or_not();
      default: return draw(8) == 0 ? fail_one() : look(true);
    }
  }
  // A transaction that is covered would not be parked, except by a batch that writes its key.
  void park_covered_or_not() {
    park_one();
    const auto newest = std::prev(wishes_.end());
    if (!is_covered(newest->second)) return;
    table.add(name(newest->second.key), 0);
    tested_.end_batch(table.engine()->before_images());
    note_covered();
  }

  std::mt19937_64 random_{GetParam()};
  const std::vector<std::shared_ptr<Client>> clients_{std::make_shared<Client>("one"), std::make_shared<Client>("two"),
                                                      std::make_shared<Client>("three"),
                                                      std::make_shared<Client>("four")};
  std::set<std::uint64_t> failed_;  // numbers of requests; 0: none
  std::map<std::uint64_t, Wish> wishes_;
  std::array<std::int64_t, kKeys> amounts_{};
  TimeUs now_us_ = 1;
  std::uint64_t arrivals_ = 0;
  Waiting tested_{options, [this](const Parked& parked) { return failed_.contains(parked.request); }};
};

TEST_P(WaitingRandomTest, AgreesWithTheModel) {
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    i % 25 == 24 ? settle() : step();
    if (HasFailure()) return;
  }
  while (!wishes_.empty() && !HasFailure()) {
    now_us_ += 10;
    settle();
  }
  EXPECT_TRUE(tested_.empty());
  EXPECT_EQ(tested_.parked_bytes(), 0u);
  for (const auto& client : clients_) EXPECT_EQ(client->parked_bytes.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WaitingRandomTest, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace kilokv::server
