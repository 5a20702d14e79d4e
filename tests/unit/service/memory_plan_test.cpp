#include "server/memory_plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "server/core/memory/memory_bounds.hpp"
#include "server/machine_memory.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;

ServerOptions with_limit(std::uint64_t limit) {
  ServerOptions options;
  options.database.memory_limit = limit;
  return options;
}

std::uint64_t sum_of_bounds(const ServerOptions& options) {
  std::uint64_t sum = 0;
  for (const MemoryOwner& owner : memory_bounds(options.database)) sum += owner.bound_bytes;
  for (const MemoryOwner& owner : memory_bounds(options)) sum += owner.bound_bytes;
  return sum;
}

TEST(MemoryPlan, TheBoundsFillTheLimit) {
  for (const std::uint64_t limit : {470 * kMiB, 512 * kMiB, kGiB, 3 * kGiB, 16 * kGiB, 100 * kGiB}) {
    ServerOptions options = with_limit(limit);
    ASSERT_TRUE(plan_memory(64 * kGiB, &options).ok()) << limit;
    EXPECT_EQ(sum_of_bounds(options), limit);
    EXPECT_TRUE(options.validate().ok());
  }
}

TEST(MemoryPlan, ALargeLimitKeepsTheDefaults) {
  ServerOptions options = with_limit(16 * kGiB);
  ASSERT_TRUE(plan_memory(0, &options).ok());
  const ServerOptions defaults;
  EXPECT_EQ(options.database.parked_bytes_max, defaults.database.parked_bytes_max);
  EXPECT_EQ(options.service.answers_bytes_max, defaults.service.answers_bytes_max);
  EXPECT_EQ(options.storage.log_buffer_bytes, defaults.storage.log_buffer_bytes);
  EXPECT_GT(options.database.data_bytes_max, 9 * kGiB);
}

TEST(MemoryPlan, ASmallerLimitCutsTheDefaultsInProportion) {
  ServerOptions options = with_limit(4 * kGiB);
  options.database.queue_bytes_max = 300 * kMiB;
  options.given = {"queue-bytes-max"};
  ASSERT_TRUE(plan_memory(0, &options).ok());
  EXPECT_EQ(options.database.parked_bytes_max, 256 * kMiB);
  EXPECT_EQ(options.service.grpc_memory_max, 64 * kMiB);
  EXPECT_EQ(options.database.scans_in_flight_max, 64u);
  EXPECT_EQ(options.database.sessions_max, 25000u);
  EXPECT_EQ(options.database.batch_max_reads, 16384u);
  EXPECT_EQ(options.database.queue_bytes_max, 300 * kMiB) << "what somebody has set is not cut";
  options = with_limit(512 * kMiB);
  ASSERT_TRUE(plan_memory(0, &options).ok());
  EXPECT_EQ(options.service.grpc_memory_max, 32 * kMiB) << "the least that works";
  EXPECT_EQ(options.service.connections_max, 512u);
  EXPECT_GT(options.database.data_bytes_max, 47 * kMiB);
  options = with_limit(512 * kMiB);
  options.service.tls = {.cert_file = "server.crt", .key_file = "server.key"};
  EXPECT_TRUE(plan_memory(0, &options).ok()) << "connections with TLS take more";
  options = with_limit(512 * kMiB);
  options.service.tls = {.cert_file = "server.crt", .key_file = "server.key", .client_ca_file = "ca.crt"};
  EXPECT_TRUE(plan_memory(0, &options).ok()) << "those with certificates of clients even more, so they are fewer";
  EXPECT_EQ(options.service.connections_max, 222u);
}

// The factors that a client can bring about.
TEST(MemoryPlan, TheBoundsCountWhatClientsCanBringAbout) {
  ServerOptions options = with_limit(16 * kGiB);
  ASSERT_TRUE(plan_memory(0, &options).ok());
  const auto bound = [&](const std::string& name) {
    for (const MemoryOwner& owner : memory_bounds(options.database)) {
      if (owner.name == name) return owner.bound_bytes;
    }
    for (const MemoryOwner& owner : memory_bounds(options)) {
      if (owner.name == name) return owner.bound_bytes;
    }
    return std::uint64_t{0};
  };
  const DatabaseOptions& core = options.database;
  EXPECT_EQ(bound("sessions"), core.session_bytes_total_max + core.sessions_max * kSessionBytes);
  const std::uint64_t record = 4 * core.batch_max_bytes;
  EXPECT_GE(bound("batches"),
            (core.batch_in_flight_max + 1) * (record + 3 * core.batch_max_bytes) + 2 * core.batch_max_reads * 1024);
  EXPECT_GE(bound("storage"), 8 * (options.storage.log_buffer_bytes + record));
  EXPECT_EQ(bound("decoding"),
            10 * (options.service.message_bytes_max + (256 << 10)) + options.service.grpc_memory_max / 4);
}

TEST(MemoryPlan, WithoutALimitTheMachineDecides) {
  ServerOptions options;
  ASSERT_TRUE(plan_memory(10 * kGiB, &options).ok());
  EXPECT_NEAR(static_cast<double>(options.database.memory_limit), 7.0 * static_cast<double>(kGiB), 1000);
  options = ServerOptions();
  ASSERT_TRUE(plan_memory(0, &options).ok());
  EXPECT_EQ(options.database.memory_limit, 0u) << "nothing is known of the machine";
  EXPECT_EQ(options.database.data_bytes_max, 0u);
}

TEST(MemoryPlan, ALimitThatIsTooLowIsRefusedWithTheLeastOne) {
  ServerOptions options = with_limit(100 * kMiB);
  const Status refused = plan_memory(64 * kGiB, &options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("--memory-limit is 104857600 bytes; the limit is at least "), std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("queue 16777216 bytes"), std::string::npos) << refused.message();
  const std::string text = refused.message().substr(refused.message().find("at least ") + 9);
  const std::uint64_t least = std::stoull(text) * kMiB;
  options = with_limit(least);
  EXPECT_TRUE(plan_memory(0, &options).ok()) << least;
  EXPECT_LE(least, 470 * kMiB);
  options = with_limit(least - kMiB);
  EXPECT_FALSE(plan_memory(0, &options).ok());
}

TEST(MemoryPlan, BoundsThatAreTooHighForTheLimitAreListed) {
  ServerOptions options = with_limit(kGiB);
  options.service.answers_bytes_max = 2 * kGiB;
  options.given = {"answers-bytes-max", "memory-limit"};
  const Status refused = plan_memory(0, &options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("answers 2147483648 bytes"), std::string::npos) << refused.message();
}

class MachineMemoryTest : public ::testing::Test {
 protected:
  MachineMemoryTest() { write("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:   17 kB\n"); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path(path.substr(1));
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  MachineMemory read() const { return machine_memory(folder_.path(".")); }

 private:
  test::TestFolder folder_;
};

TEST_F(MachineMemoryTest, WithoutCgroups) {
  EXPECT_EQ(read().usable(), 8 * kGiB);
  EXPECT_EQ(read().cgroup_bytes, 0u);
}

TEST_F(MachineMemoryTest, TheLowestLimitOfVersion2Counts) {
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  write("/sys/fs/cgroup/a/memory.max", "1073741824\n");
  EXPECT_EQ(read().usable(), kGiB);
  write("/sys/fs/cgroup/a/b/memory.max", "536870912\n");
  EXPECT_EQ(read().usable(), 512 * kMiB);
}

// In a container, the group of the container is at the top.
TEST_F(MachineMemoryTest, APathOfTheHostLeadsToTheTop) {
  write("/proc/self/cgroup", "0::/system.slice/container-1\n");
  write("/sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(read().usable(), 2 * kGiB);
}

TEST_F(MachineMemoryTest, Version1) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x/y\n1:name=systemd:/z\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().usable(), 8 * kGiB);
  EXPECT_EQ(read().cgroup_bytes, 0u) << "no limit, in the words of version 1";
  write("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "629145600\n");
  EXPECT_EQ(read().usable(), 600 * kMiB);
}

}  // namespace
}  // namespace kilokv::server
