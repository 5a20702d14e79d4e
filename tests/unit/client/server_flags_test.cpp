#include "client/command_line/server_flags.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "client/command_line/arguments.hpp"

namespace kilokv::client {
namespace {

class ServerFlagsTest : public testing::Test {
 protected:
  ServerFlagsTest() { unsetenv(kEndpointVariable); }
  ~ServerFlagsTest() override { unsetenv(kEndpointVariable); }

  // What a program called like this takes.
  Expected<ClientOptions> options(std::vector<const char*> words) {
    const auto app = make_app("", "program");
    const ServerFlags flags(app.get());
    words.insert(words.begin(), "program");
    EXPECT_EQ(parse_arguments(app.get(), static_cast<int>(words.size()), words.data()), std::nullopt);
    ClientOptions options;
    if (const Error error = flags.apply(&options)) return error;
    return options;
  }
};

TEST_F(ServerFlagsTest, TheFlagWinsOverTheVariableAndThisOverTheDefault) {
  EXPECT_EQ(options({})->endpoint, "127.0.0.1:7070");
  setenv(kEndpointVariable, "db:1", 1);
  EXPECT_EQ(options({})->endpoint, "db:1");
  EXPECT_EQ(options({"--endpoint", "other:2"})->endpoint, "other:2");
  setenv(kEndpointVariable, "", 1);
  EXPECT_EQ(options({})->endpoint, "127.0.0.1:7070") << "empty counts as unset";
}

TEST_F(ServerFlagsTest, AWrongVariableIsNamed) {
  setenv(kEndpointVariable, "db", 1);
  const auto refused = options({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message.find("the environment variable KILOKV_ENDPOINT: \"db\" is not HOST:PORT"), 0u)
      << refused.error().message;
  EXPECT_EQ(options({"--endpoint", "other:2"})->endpoint, "other:2") << "what is not used may be wrong";
}

TEST_F(ServerFlagsTest, WaitsOnlyIfTold) {
  EXPECT_EQ(options({})->wait_for_server_us, 0u);
  EXPECT_EQ(options({"--wait"})->wait_for_server_us, 30'000'000u);
  EXPECT_EQ(options({"--wait", "2m"})->wait_for_server_us, 120'000'000u);
  EXPECT_EQ(options({"--wait-for-server=500ms"})->wait_for_server_us, 500'000u);
  EXPECT_EQ(options({"--wait=0"})->wait_for_server_us, 0u);
}

}  // namespace
}  // namespace kilokv::client
