#include "kilokv/access.hpp"

#include <gtest/gtest.h>

#include "tests/unit/client/fake_server.hpp"

namespace kilokv::client {
namespace {

TEST(Access, ConnectsToAServer) {
  FakeServer server;
  const auto admin = AccessAdmin::connect(server.client_options());
  ASSERT_TRUE(admin) << admin.error().message;
  EXPECT_EQ((*admin)->remove_user("alice").code, ErrorCode::unimplemented) << "this one has no logins";
}

TEST(Access, AFileThatIsMissingIsAnError) {
  FakeServer server;
  ClientOptions options = server.client_options();
  options.tls.enabled = true;
  options.tls.ca_file = "no/such/file";
  const auto admin = AccessAdmin::connect(options);
  ASSERT_FALSE(admin);
  EXPECT_EQ(admin.error().code, ErrorCode::invalid_argument) << admin.error().message;
  EXPECT_NE(admin.error().message.find("no/such/file"), std::string::npos) << admin.error().message;
}

}  // namespace
}  // namespace kilokv::client
