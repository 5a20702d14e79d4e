// Connections of a crowded address are read in turns: with real sockets.
#include "tests/unit/edge/connections_fixture.hpp"

namespace kilokv::server {
namespace {

// A crowd of connections of 127.0.0.2, and one of 127.0.0.3.
class CrowdTest : public FloodTest {
 protected:
  static constexpr std::size_t kMany = 6;

  void SetUp() override {
    accounts_for_all_ = true;
    start(limits(20, 20));
    for (std::size_t i = 0; i <= kMany; ++i) {
      clients_.push_back(connect(i < kMany ? 2 : 3));
      ASSERT_TRUE(soon([&] { return handed_over() == i + 1; }));
    }
  }
  void send_calls(const Descriptor& client) {
    const std::vector<char> calls(100);
    ASSERT_EQ(::send(client.get(), calls.data(), calls.size(), 0), 100);
  }
  // The buffer of the first connection is full.
  void begin_turns_with_a_full_buffer() {
    for (const Descriptor& client : clients_) send_calls(client);
    ASSERT_TRUE(soon([&] { return held() > 0; }));
    const std::vector<char> chunk(10000);
    while (::send(clients_[0].get(), chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  // The connections that gRPC would read now.
  std::vector<std::size_t> readable() {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < handed_over_.size(); ++i) {
      pollfd one = {.fd = handed_over_[i].get(), .events = POLLIN, .revents = 0};
      if (::poll(&one, 1, 0) == 1) numbers.push_back(i);
    }
    return numbers;
  }
  std::size_t held() {
    std::size_t count = 0;
    for (const Descriptor& connection : handed_over_) {
      int least = 0;
      socklen_t size = sizeof least;
      EXPECT_EQ(::getsockopt(connection.get(), SOL_SOCKET, SO_RCVLOWAT, &least, &size), 0);
      count += least != 1;
    }
    return count;
  }
  ssize_t read(std::size_t number) {
    std::vector<char> bytes(1000);
    return ::recv(handed_over_[number].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  }

  std::vector<Descriptor> clients_;
};

// With so many connections, a look reads the bytes of only some of them. It reads those of all that take turns.
TEST_F(FloodTest, EachLookTakesAllOfALargeCrowd) {
  constexpr std::size_t kMany = 600;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  accounts_for_all_ = true;
  watched_ = "ipv4:127.0.0.2:17171";
  start(limits(2 * kMany, kMany));
  std::vector<Descriptor> clients;
  for (std::size_t i = 0; i <= kMany; ++i) {
    clients.push_back(connect(i < kMany ? 2 : 3, i == 0 ? 17171 : 0));
    ASSERT_TRUE(soon([&] { return handed_over() == i + 1; }));
  }
  for (const Descriptor& client : clients) ASSERT_EQ(::send(client.get(), "call", 4, 0), 4);
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(mutex_);
    int least = 0;
    socklen_t size = sizeof least;
    return ::getsockopt(handed_over_[0].get(), SOL_SOCKET, SO_RCVLOWAT, &least, &size) == 0 && least > 1;
  }));
  const std::uint64_t looks = looks_, at_watched = looks_at_watched_;
  ASSERT_TRUE(soon([&] { return looks_ >= looks + 20; }));
  EXPECT_GE(looks_at_watched_, at_watched + 19);
}

TEST_F(CrowdTest, IsReadInTurnsUntilNobodyWaits) {
  for (const Descriptor& client : clients_) send_calls(client);
  ASSERT_TRUE(soon([&] { return readable().size() == 2; }));
  EXPECT_EQ(read(kMany), 100) << "the other address does not wait";
  std::set<std::size_t> were_read;
  while (were_read.size() < kMany) {
    ASSERT_TRUE(soon([&] { return !readable().empty(); }));
    for (const std::size_t number : readable()) {
      EXPECT_EQ(read(number), 100);
      EXPECT_TRUE(were_read.insert(number).second);
    }
  }
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(mutex_);
    return crowd_ == "127.0.0.2";
  }));
  EXPECT_TRUE(soon([&] { return held() == 0; }));
  for (const Descriptor& client : clients_) send_calls(client);
  EXPECT_EQ(readable().size(), clients_.size());
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

TEST_F(CrowdTest, ManyBytesOfCallsAreCutOff) {
  begin_turns_with_a_full_buffer();
  EXPECT_TRUE(soon([&] { return connections_->counts().open == kMany; }));
  EXPECT_TRUE(is_closed(clients_[0]));
  EXPECT_EQ(connections_->counts().cut_off, 1u);
}

TEST_F(CrowdTest, LongMessagesAreNotCutOff) {
  begin_turns_with_a_full_buffer();
  message_bytes_ = 1 << 20;  // of each connection
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * ReadingTurns::kUnbearableMs));
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

TEST_F(CrowdTest, EndsBeforeTheTurnsGetNoneEither) {
  for (std::size_t i = 0; i < kMany; ++i) {
    send_calls(clients_[i]);
    ::shutdown(clients_[i].get(), SHUT_WR);
  }
  send_calls(clients_[kMany]);
  EXPECT_TRUE(soon([&] { return connections_->counts().open == 1; }));
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(read(i), 0);
}

TEST_F(CrowdTest, NobodyIsHeldBackAfterTheEnd) {
  for (const Descriptor& client : clients_) send_calls(client);
  ASSERT_TRUE(soon([&] { return held() > 0; }));
  connections_->stop();
  EXPECT_EQ(held(), 0u);
}

TEST_F(CrowdTest, AnEndGetsNoTurn) {
  for (const Descriptor& client : clients_) send_calls(client);
  ASSERT_TRUE(soon([&] { return readable().size() == 2; }));
  const std::size_t held = readable().front() == 0 ? 1 : 0;
  ::shutdown(clients_[held].get(), SHUT_WR);
  EXPECT_TRUE(soon([&] { return connections_->counts().open == kMany; }));
  EXPECT_EQ(read(held), 0) << "its calls are gone";
  EXPECT_TRUE(is_closed(clients_[held]));
}

}  // namespace
}  // namespace kilokv::server
