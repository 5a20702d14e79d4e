// In which order the commands of several clients run.
#include "server/core/pipeline/command_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace kilokv::server {
namespace {

class CommandQueueTest : public ::testing::Test {
 protected:
  void push(const std::shared_ptr<Client>& client, const std::string& name) {
    commands.push(client, [this, name] { ran.push_back(name); });
  }
  std::vector<std::string> run_all() {
    while (auto command = commands.take()) (*command)();
    EXPECT_TRUE(commands.empty());
    return ran;
  }

  CommandQueue commands;
  std::vector<std::string> ran;
};

TEST_F(CommandQueueTest, ALightClientWaitsForOneCommandOfEachOther) {
  const auto greedy = std::make_shared<Client>("greedy"), light = std::make_shared<Client>("light");
  for (const char* name : {"g1", "g2", "g3"}) push(greedy, name);
  push(light, "l1");
  push(nullptr, "server");
  push(light, "l2");
  EXPECT_EQ(run_all(), (std::vector<std::string>{"g1", "l1", "server", "g2", "l2", "g3"}));
  EXPECT_FALSE(commands.take().has_value());
}

TEST_F(CommandQueueTest, AClientThatComesBackIsLast) {
  const auto a = std::make_shared<Client>("a"), b = std::make_shared<Client>("b");
  push(a, "a1");
  (*commands.take())();
  push(b, "b1");
  push(a, "a2");
  EXPECT_EQ(run_all(), (std::vector<std::string>{"a1", "b1", "a2"}));
}

TEST_F(CommandQueueTest, AClientLivesWhileItsCommandsWait) {
  auto client = std::make_shared<Client>("a");
  const std::weak_ptr<Client> weak = client;
  push(client, "a1");
  client.reset();
  EXPECT_FALSE(weak.expired());
  run_all();
  EXPECT_TRUE(weak.expired());
}

}  // namespace
}  // namespace kilokv::server
