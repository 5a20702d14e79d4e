// In which order the requests of several clients leave the queue.
#include "server/core/pipeline/turns.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/core/pipeline/transaction_cost.hpp"

namespace kilokv::server {
namespace {

class TurnsTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  void push(const std::string& client, std::uint64_t cost, TimeUs admitted_us = 0) {
    std::shared_ptr<Client>& known = clients_[client];
    if (known == nullptr) known = std::make_shared<Client>(client);
    auto request = std::make_shared<AdmittedRequest>();
    request->client = known;
    request->cost_left = cost;
    request->admitted_us = admitted_us;
    turns.push(std::move(request));
  }
  // Serves whole requests, and returns whose they were.
  Names serve(std::size_t count) {
    Names served;
    while (served.size() < count) {
      const auto request = turns.next();
      if (request == nullptr) break;
      served.push_back(request->client->name);
      turns.took(request->cost_left, true);
    }
    return served;
  }

  std::map<std::string, std::shared_ptr<Client>> clients_;
  Turns turns;
};

TEST_F(TurnsTest, OneClientKeepsItsOrder) {
  EXPECT_EQ(turns.next(), nullptr);
  for (const TimeUs at : {1, 2, 3}) push("a", 10, at);
  for (const TimeUs at : {1, 2, 3}) {
    EXPECT_EQ(turns.next()->admitted_us, at);
    turns.took(10, true);
  }
  EXPECT_EQ(turns.next(), nullptr);
  EXPECT_TRUE(turns.empty());
}

TEST_F(TurnsTest, ManyRequestsOfOneClientDoNotDelayAnother) {
  for (int i = 0; i < 100; ++i) push("greedy", kWholeBatch);
  push("light", 100);
  EXPECT_EQ(serve(2), (Names{"light", "greedy"}));
  push("light", 100);
  EXPECT_EQ(serve(1), Names{"light"});
}

TEST_F(TurnsTest, ALightClientDoesNotWaitForTheTurnsOfManyBusyOnes) {
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 4; ++j) push("greedy" + std::to_string(i), kWholeBatch);
  }
  serve(10);
  push("light", 128);
  EXPECT_EQ(serve(1), Names{"light"});
}

TEST_F(TurnsTest, EqualClientsShareByCostNotByNumber) {
  for (int i = 0; i < 60; ++i) push("small", 1000);
  for (int i = 0; i < 20; ++i) push("large", 3000);
  std::map<std::string, int> counts;
  for (const std::string& name : serve(40)) ++counts[name];
  EXPECT_NEAR(counts["small"], 30, 3);
  EXPECT_NEAR(counts["large"], 10, 3);
}

TEST_F(TurnsTest, TheWeightCountsForLargeRequestsToo) {
  clients_["one"] = std::make_shared<Client>("one");
  clients_["three"] = std::make_shared<Client>("three");
  clients_["three"]->user_weight = 3;
  for (int i = 0; i < 100; ++i) {
    push("one", kWholeBatch);
    push("three", kWholeBatch);
  }
  std::map<std::string, int> counts;
  for (const std::string& name : serve(40)) ++counts[name];
  EXPECT_NEAR(counts["one"], 10, 1);
  EXPECT_NEAR(counts["three"], 30, 1);
}

TEST_F(TurnsTest, TheTurnsOfAllBusyClientsFillOneBatch) {
  push("a", kWholeBatch);
  EXPECT_EQ(turns.next()->client->name, "a");
  EXPECT_EQ(turns.turn(), kWholeBatch);
  for (const char* name : {"b", "c", "d"}) push(name, kWholeBatch);
  EXPECT_EQ(turns.turn(), kWholeBatch / 4);
  std::map<std::string, int> counts;
  for (int i = 0; i < 8; ++i) {
    ++counts[turns.next()->client->name];
    turns.took(kWholeBatch / 4, false);
  }
  for (const auto& [name, count] : counts) EXPECT_EQ(count, 2) << name;
}

TEST_F(TurnsTest, WeightsShareTheTurns) {
  for (int i = 0; i < 100; ++i) push("one", 1000);
  // Known before it has requests here.
  clients_["three"] = std::make_shared<Client>("three");
  clients_["three"]->user_weight = 3;
  for (int i = 0; i < 100; ++i) push("three", 1000);
  std::map<std::string, int> counts;
  for (const std::string& name : serve(80)) ++counts[name];
  EXPECT_NEAR(counts["one"], 20, 1);
  EXPECT_NEAR(counts["three"], 60, 1);
}

TEST_F(TurnsTest, ATurnIsAPartOfABatchByWeight) {
  clients_["three"] = std::make_shared<Client>("three");
  clients_["three"]->user_weight = 3;
  for (int i = 0; i < 3; ++i) {
    push("one", kWholeBatch);
    push("three", kWholeBatch);
  }
  std::map<std::string, std::uint64_t> taken;
  for (int i = 0; i < 8; ++i) {
    const std::string name = turns.next()->client->name;
    const std::uint64_t turn = turns.turn();
    taken[name] += turn;
    turns.took(turn, false);
  }
  const auto both = static_cast<double>(taken["one"] + taken["three"]);
  EXPECT_NEAR(both, 4.0 * kWholeBatch, 8) << "the turns of both fill one batch";
  EXPECT_NEAR(static_cast<double>(taken["three"]) / static_cast<double>(taken["one"]), 3, 0.5);
}

TEST_F(TurnsTest, ANewWeightCountsWhenTheQueueWasEmpty) {
  for (int i = 0; i < 20; ++i) {
    push("a", 1000);
    push("b", 1000);
  }
  clients_["a"]->user_weight = 50;  // while it has requests here
  std::map<std::string, int> counts;
  for (const std::string& name : serve(20)) ++counts[name];
  EXPECT_NEAR(counts["a"], 10, 1);
  serve(20);
  EXPECT_TRUE(turns.empty());
  push("b", kWholeBatch);
  push("a", kWholeBatch);
  EXPECT_EQ(turns.next()->client->name, "a");
  EXPECT_NEAR(static_cast<double>(turns.turn()), kWholeBatch * 50.0 / 51.0, 1) << "no part of the old weight is left";
}

TEST_F(TurnsTest, APauseGivesNoCredit) {
  push("idle", 10);
  serve(1);
  for (int i = 0; i < 50; ++i) push("busy", 1000);
  serve(40);
  for (int i = 0; i < 40; ++i) push("idle", 1000);
  std::map<std::string, int> counts;
  for (const std::string& name : serve(20)) ++counts[name];
  EXPECT_NEAR(counts["idle"], 10, 1) << "from now on half, and nothing for the pause";
}

TEST_F(TurnsTest, ServiceIsRememberedThroughAnEmptyQueue) {
  push("a", kWholeBatch);
  push("b", 10);
  EXPECT_EQ(serve(2), (Names{"b", "a"}));
  for (int i = 0; i < 3; ++i) push("b", kWholeBatch / 8);
  push("a", 10);  // it had a whole batch
  EXPECT_EQ(serve(4), (Names{"b", "b", "b", "a"}));
}

TEST_F(TurnsTest, WhoDoesNotFitGoesFirstIntoTheNextBatchButNotIntoTwoInARow) {
  for (int i = 0; i < 3; ++i) push("large", 2 * kWholeBatch);
  const auto batch_with_a_light_request = [&] {
    turns.begin_batch();
    push("light", 10);
    Names names;
    while (const auto request = turns.next()) {
      const bool fits = names.empty() || request->client->name == "light";
      if (!fits) {
        turns.put_off();
        continue;
      }
      names.push_back(request->client->name);
      turns.took(request->cost_left, true);
      if (request->client->name == "large") break;
    }
    return names;
  };
  EXPECT_EQ(batch_with_a_light_request(), Names{"light"});
  EXPECT_EQ(batch_with_a_light_request(), Names{"large"}) << "it was put off";
  EXPECT_EQ(batch_with_a_light_request(), (Names{"light", "light"})) << "now the others";
  EXPECT_EQ(batch_with_a_light_request(), Names{"large"});
  EXPECT_EQ(batch_with_a_light_request(), (Names{"light", "light"}));
}

// A client whose clock is far ahead is served with something small, while those with large transactions do not fit.
TEST_F(TurnsTest, ThePresentStaysWithThoseWhoArePutOff) {
  push("ahead", 12 * kWholeBatch);
  push("ahead", 1);
  serve(1);  // its clock is twelve batches ahead now
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 12; ++j) push("busy" + std::to_string(i), kWholeBatch + 1);
  }
  turns.begin_batch();
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(turns.next()->client->name.substr(0, 4), "busy");
    turns.put_off();
  }
  EXPECT_EQ(serve(1), Names{"ahead"});
  push("light", 1);
  for (int batch = 0; batch < 2; ++batch) {
    turns.begin_batch();
    if (serve(1) == Names{"light"}) return;
  }
  FAIL() << "it waits for the busy ones, until their clocks are where that of the other was";
}

TEST_F(TurnsTest, AClientThatIsServedIsNotOvertakenInItsTurn) {
  push("greedy", kWholeBatch);
  const auto served = turns.next();
  push("light", 1);
  EXPECT_EQ(turns.next(), served) << "the turn goes on";
  turns.took(10, false);
  EXPECT_EQ(turns.next()->client->name, "light");
}

TEST_F(TurnsTest, ARemovedRequestCostsNothing) {
  push("a", kWholeBatch);
  push("a", 10, 7);
  turns.next();
  turns.remove();
  EXPECT_EQ(turns.next()->admitted_us, 7);
  EXPECT_EQ(clients_["a"]->queue.begin, 0);
}

}  // namespace
}  // namespace kilokv::server
