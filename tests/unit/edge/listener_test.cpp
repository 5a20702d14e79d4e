// Which addresses a server listens on, and what it says where it cannot.
#include "server/edge/listener.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace kilokv::server {
namespace {

TEST(Listener, PicksAFreePortAndSaysWhich) {
  const Result<Listener> listener = listen_on("127.0.0.1:0");
  ASSERT_TRUE(listener.ok()) << listener.status().message();
  EXPECT_GT(listener->port, 0);
  EXPECT_EQ(listener->endpoint, "127.0.0.1:" + std::to_string(listener->port));
  EXPECT_EQ(listener->sockets.size(), 1u);
  EXPECT_TRUE(listener->loopback_only);
}

TEST(Listener, APortInUseIsNamed) {
  const Result<Listener> first = listen_on("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const Status second = listen_on(first->endpoint).status();
  EXPECT_EQ(second.code(), StatusCode::unavailable);
  EXPECT_EQ(second.message(), "cannot listen on " + first->endpoint +
                                  " (--listen): Address already in use: another program "
                                  "listens there; end it, or choose another port");
}

TEST(Listener, APortIsFreeAgainAfterItsServer) {
  std::string endpoint;
  {
    const Result<Listener> first = listen_on("127.0.0.1:0");
    ASSERT_TRUE(first.ok());
    endpoint = first->endpoint;
  }
  EXPECT_TRUE(listen_on(endpoint).ok());
}

TEST(Listener, EveryAddressIsPublic) {
  for (const char* endpoint : {"0.0.0.0:0", "[::]:0"}) {
    const Result<Listener> listener = listen_on(endpoint);
    if (!listener.ok()) {  // a machine without IPv6
      EXPECT_STREQ(endpoint, "[::]:0");
      continue;
    }
    EXPECT_FALSE(listener->loopback_only) << endpoint;
  }
}

TEST(Listener, AnAddressThatIsNamedTwiceIsTakenOnce) {
  std::array<sockaddr_in, 3> addresses{};
  std::array<addrinfo, 3> list{};
  for (std::size_t i = 0; i < list.size(); ++i) {
    addresses[i].sin_addr.s_addr = htonl(i == 1 ? 0x7F000002u : 0x7F000001u);
    list[i].ai_addrlen = sizeof addresses[i];
    list[i].ai_addr = reinterpret_cast<sockaddr*>(&addresses[i]);
    list[i].ai_next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  EXPECT_FALSE(is_repeated(list[0], list[0]));
  EXPECT_FALSE(is_repeated(list[0], list[1]));
  EXPECT_TRUE(is_repeated(list[0], list[2]));
}

TEST(Listener, AnUnknownHostIsNamed) {
  const Status status = listen_on("no such host:7070").status();
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_NE(status.message().find("cannot listen on no such host:7070 (--listen): the host is not known: "),
            std::string::npos)
      << status.message();
}

TEST(Listener, AnAddressOfAnotherMachineIsRefused) {
  const Status status = listen_on("192.0.2.1:0").status();  // an address that is only for documents
  EXPECT_EQ(status.message(),
            "cannot listen on 192.0.2.1:0 (--listen): Cannot assign requested address: this "
            "machine does not have the address");
}

TEST(Descriptors, HalfAreKeptAndEachConnectionTakesTwo) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Result<std::uint32_t> many = raise_descriptor_limit(1u << 30);
  ASSERT_TRUE(many.ok());
  EXPECT_EQ(*many, before.rlim_max / 4);
  rlimit after = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(raise_descriptor_limit(3).ok(), true);
  EXPECT_EQ(*raise_descriptor_limit(3), 3u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// A hard limit cannot be raised again, so a child has the low one. It exits with 0 if all is as it should be.
TEST(Descriptors, ALimitThatIsTooLowIsToldWithItsNumbers) {
  const auto child = [](rlim_t most, const std::string& says) {
    const pid_t process = ::fork();
    if (process == 0) {
      const rlimit low = {.rlim_cur = most, .rlim_max = most};
      ::setrlimit(RLIMIT_NOFILE, &low);
      const Result<std::uint32_t> fit = raise_descriptor_limit(1000);
      ::_exit(fit.ok() == says.empty() && fit.status().message() == says ? 0 : 1);
    }
    int state = 0;
    ::waitpid(process, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  };
  EXPECT_EQ(
      child(100,
            "this process may have 100 files open, connections included, and needs 128 at least: raise this limit "
            "(ulimit -n, or LimitNOFILE in the unit of systemd)"),
      0);
  EXPECT_EQ(child(128, ""), 0);
}

}  // namespace
}  // namespace kilokv::server
