#include "server/service/status_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace kilokv::server {
namespace {

TEST(StatusJson, EverySectionIsOneObjectWithPlainValues) {
  v1::StatusResponse status;
  status.mutable_server()->set_state(v1::ServerSection::STATE_READY);
  status.mutable_server()->set_uptime_seconds(1.5);
  status.mutable_server()->set_insecure(true);
  status.mutable_position()->set_durable_batch(std::uint64_t{1} << 60);
  status.mutable_position()->set_state_hash(std::string("\x00\xff\x10", 3));
  status.mutable_device()->set_device("cpu");
  v1::NamedText* const setting = status.add_settings();
  setting->set_name("order");
  setting->set_text("a \"text\"");
  v1::MemoryOwner* const owner = status.mutable_memory()->add_owners();
  owner->set_name("queue");
  owner->set_bytes(5);
  owner->set_bound_bytes(7);
  const std::string text = status_json(status);
  EXPECT_EQ(text.back(), '\n');
  const nlohmann::json fields = nlohmann::json::parse(text);
  EXPECT_EQ(fields["state"], "ready");
  EXPECT_EQ(fields["uptime_seconds"], 1.5);
  EXPECT_EQ(fields["insecure"], true);
  EXPECT_EQ(fields["durable_batch"], std::uint64_t{1} << 60);
  EXPECT_EQ(fields["state_hash"], "00ff10");
  EXPECT_EQ(fields["device"], "cpu");
  EXPECT_EQ(fields["order"], "a \"text\"");
  EXPECT_EQ(fields["memory"]["queue"]["bytes"], 5);
  EXPECT_EQ(fields["memory"]["queue"]["bound_bytes"], 7);
  EXPECT_EQ(fields["memory_sum_bytes"], 0) << "a number that is 0 is there, too";
}

}  // namespace
}  // namespace kilokv::server
