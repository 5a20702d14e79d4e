#include "client/command_line/server_flags.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "client/command_line/arguments.hpp"

namespace kilokv::client {
namespace {

class ServerFlagsTest : public testing::Test {
 protected:
  ServerFlagsTest() { unset(); }
  ~ServerFlagsTest() override { unset(); }

  static void unset() {
    for (const char* name : {kEndpointVariable, kTlsVariable, "KILOKV_CLIENT_TLS_CA", "KILOKV_CLIENT_TLS_CERT",
                             "KILOKV_CLIENT_TLS_KEY", "KILOKV_CLIENT_TLS_SERVER_NAME"}) {
      unsetenv(name);
    }
  }

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

TEST_F(ServerFlagsTest, EachSettingOfTlsTurnsItOn) {
  EXPECT_FALSE(options({})->tls.enabled);
  EXPECT_TRUE(options({"--tls"})->tls.enabled);
  EXPECT_EQ(options({"--tls"})->tls.ca_file, "");
  for (const char* flag : {"--tls-ca", "--tls-cert", "--tls-key", "--tls-server-name"}) {
    const TlsOptions tls = options({flag, "x"})->tls;
    EXPECT_TRUE(tls.enabled) << flag;
    EXPECT_EQ(tls.ca_file + tls.cert_file + tls.key_file + tls.server_name, "x") << flag;
  }
}

TEST_F(ServerFlagsTest, AFlagOfTlsWinsOverItsVariable) {
  setenv("KILOKV_CLIENT_TLS_CA", "ca", 1);
  setenv("KILOKV_CLIENT_TLS_CERT", "cert", 1);
  setenv("KILOKV_CLIENT_TLS_KEY", "key", 1);
  setenv("KILOKV_CLIENT_TLS_SERVER_NAME", "name", 1);
  const TlsOptions tls = options({"--tls-ca", "other", "--endpoint", "db:1"})->tls;
  EXPECT_TRUE(tls.enabled);
  EXPECT_EQ(tls.ca_file, "other");
  EXPECT_EQ(tls.cert_file, "cert");
  EXPECT_EQ(tls.key_file, "key");
  EXPECT_EQ(tls.server_name, "name");
}

TEST_F(ServerFlagsTest, TheVariableOfTlsIs0Or1) {
  setenv(kTlsVariable, "1", 1);
  EXPECT_TRUE(options({})->tls.enabled);
  setenv(kTlsVariable, "0", 1);
  EXPECT_FALSE(options({})->tls.enabled);
  EXPECT_TRUE(options({"--tls"})->tls.enabled);
  setenv(kTlsVariable, "yes", 1);
  const auto refused = options({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message, "the environment variable KILOKV_CLIENT_TLS: \"yes\" is not 0 or 1");
}

}  // namespace
}  // namespace kilokv::client
