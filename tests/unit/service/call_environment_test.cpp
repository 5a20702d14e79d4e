// How a message comes to be decoded, and what counts as refused.
#include "server/service/call_environment.hpp"

#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "server/core/access/access_check.hpp"
#include "tests/unit/service/log_lines.hpp"

namespace kilokv::server {
namespace {

// As gRPC makes it: in two pieces.
grpc::ByteBuffer message_of(std::size_t bytes) {
  const std::vector<grpc::Slice> pieces{grpc::Slice(std::string(bytes / 2, 'a')),
                                        grpc::Slice(std::string(bytes - bytes / 2, 'b'))};
  return {pieces.data(), pieces.size()};
}

std::size_t pieces_of(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> pieces;
  return message.Dump(&pieces).ok() ? pieces.size() : 0;
}

TEST(CallEnvironmentTest, AMessageThatHasToWaitLeavesGrpcsMemory) {
  CallEnvironment environment{ServiceOptions()};
  const auto client = std::make_shared<Client>("light"), busy = std::make_shared<Client>("busy");
  constexpr std::uint64_t kLong = kDecodedHereBytesMax + 1;
  std::promise<void> done;
  const std::shared_future<void> waiting = done.get_future().share();
  for (std::size_t i = 0; i < environment.decode.threads(); ++i) {
    std::promise<void> began;
    auto beginning = began.get_future();
    const std::function<void()> work = [&] { began.set_value(), waiting.wait(); };
    EXPECT_TRUE(environment.decode.run(busy, kLong, UINT64_MAX, work, [&] { return work; }).ok());
    beginning.wait();
  }
  std::vector<std::size_t> pieces;
  const auto work = [&pieces](grpc::ByteBuffer* message) { pieces.push_back(pieces_of(*message)); };
  grpc::ByteBuffer brief = message_of(DecodeQueue::kShortBytes), of_medium = message_of(DecodeQueue::kShortBytes + 1),
                   lengthy = message_of(kLong);
  EXPECT_TRUE(environment.decode_by(client, &brief, work).ok());
  EXPECT_EQ(pieces, (std::vector<std::size_t>{2})) << "the threads are busy";
  EXPECT_TRUE(environment.decode_by(client, &of_medium, work).ok());
  EXPECT_EQ(pieces, (std::vector<std::size_t>{2, 2})) << "it was decoded here";
  EXPECT_TRUE(environment.decode_by(client, &lengthy, work).ok());
  EXPECT_EQ(pieces.size(), 2u) << "it waits";
  EXPECT_EQ(client->undecoded_bytes.load(), kLong);
  done.set_value();
  environment.decode.drain();
  EXPECT_EQ(pieces, (std::vector<std::size_t>{2, 2, 1})) << "it was copied before it waited";
}

// The client asks for the status first, and goes on without it.
TEST(CallEnvironmentTest, ThatAUserMayNotSeeTheStatusIsNoRefusal) {
  CallEnvironment environment{ServiceOptions()};
  const Client client("user:alice");
  test::LogLines lines;
  const auto count = [&] {
    for (const auto& [reason, times] : environment.metrics.refusals()) {
      if (reason == "RIGHT_MISSING") return times;
    }
    return std::uint64_t{0};
  };
  environment.refuse(right_missing("alice", "metrics", "Status"), client);
  EXPECT_EQ(count(), 0u);
  EXPECT_EQ(lines.take(), "");
  environment.refuse(right_missing("alice", "metrics", "ListHotKeys"), client);
  EXPECT_EQ(count(), 1u);
  EXPECT_NE(lines.take().find("field=\"ListHotKeys\""), std::string::npos);
}

}  // namespace
}  // namespace kilokv::server
