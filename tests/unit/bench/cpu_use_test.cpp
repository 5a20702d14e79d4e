// What /proc says, and the shares that follow from it.
#include "client/bench/cpu_use.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace kilokv::bench {
namespace {

TEST(CpuUse, TheLineOfTheMachine) {
  const CpuTimes times = parse_machine_times("cpu  100 20 30 400 50 6 7 80 9 10", 10);
  EXPECT_DOUBLE_EQ(times.busy, 15);
  EXPECT_DOUBLE_EQ(times.idle, 45);
  EXPECT_DOUBLE_EQ(times.steal, 8);
}

TEST(CpuUse, TheLineOfAProcessWithAnyName) {
  EXPECT_DOUBLE_EQ(parse_process_time("7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 250 50 1 1 20", 100), 3);
  EXPECT_DOUBLE_EQ(parse_process_time("", 100), 0);
}

CpuTimes begin() {
  CpuTimes times;
  times.at_us = 5'000'000;
  times.busy = 100;
  times.idle = 200;
  times.steal = 10;
  times.client = 1;
  times.server = 50;
  times.by_thread = {{1, 0.5}, {2, 0.5}};
  return times;
}

// Two seconds of four processors later: 8 seconds in all.
CpuTimes end() {
  CpuTimes times = begin();
  times.at_us += 2'000'000;
  times.busy += 5;
  times.idle += 2;
  times.steal += 1;
  times.client += 2;
  times.server += 1;
  times.by_thread = {{1, 0.6}, {3, 1.8}};
  return times;
}

TEST(CpuUse, Shares) {
  const CpuUse use = cpu_between(begin(), end(), ServerPlace::here, 4, 2);
  EXPECT_TRUE(use.known);
  EXPECT_DOUBLE_EQ(use.client, 0.5) << "of the two that it may use";
  EXPECT_DOUBLE_EQ(use.client_machine, 0.25);
  EXPECT_DOUBLE_EQ(use.server, 0.125);
  EXPECT_DOUBLE_EQ(use.others, 0.25);
  EXPECT_DOUBLE_EQ(use.steal, 0.125);
  EXPECT_DOUBLE_EQ(use.idle, 0.25);
  EXPECT_DOUBLE_EQ(use.busiest_thread, 0.9) << "a thread that began in this time counts from 0";
}

TEST(CpuUse, AServerElsewhereOrHidden) {
  EXPECT_DOUBLE_EQ(cpu_between(begin(), end(), ServerPlace::elsewhere, 4, 4).others, 0.375);
  EXPECT_DOUBLE_EQ(cpu_between(begin(), end(), ServerPlace::hidden, 4, 4).others, 0);
}

TEST(CpuUse, ATimeThatIsTooShortSaysNothing) {
  CpuTimes soon = begin();
  soon.at_us += kCpuLeastUs - 1;
  EXPECT_FALSE(cpu_between(begin(), soon, ServerPlace::here, 4, 4).known);
}

TEST(CpuUse, TheTimesOfThisProcess) {
  const CpuTimes before = read_cpu_times(0);
  volatile double waste = 1;
  CpuTimes now = before;
  while (now.client - before.client < 0.3) {
    for (int i = 0; i < 100'000; ++i) waste = waste * 1.000001;
    now = read_cpu_times(::getpid());
  }
  const CpuUse use = cpu_between(before, now, ServerPlace::elsewhere, machine_cores(), own_cores());
  EXPECT_TRUE(use.known);
  EXPECT_GT(use.busiest_thread, 0);
  EXPECT_GT(use.client, 0);
  EXPECT_GT(now.server, 0);
  EXPECT_GE(now.busy, before.busy);
  EXPECT_GE(machine_cores(), 1u);
}

std::string endpoint_of(int socket) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length), 0);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

TEST(CpuUse, TheProcessThatListens) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string endpoint = endpoint_of(listener);
  EXPECT_EQ(find_listener(endpoint).place, ServerPlace::elsewhere) << "it does not listen yet";
  ASSERT_EQ(::listen(listener, 1), 0);
  const ServerFound found = find_listener(endpoint);
  EXPECT_EQ(found.place, ServerPlace::here);
  EXPECT_EQ(found.pid, ::getpid());
  socklen_t length = sizeof(address);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  const int caller = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(caller, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(find_listener(endpoint_of(caller)).place, ServerPlace::elsewhere) << "it is connected, and does not listen";
  ::close(caller);
  ::close(listener);
}

}  // namespace
}  // namespace kilokv::bench
