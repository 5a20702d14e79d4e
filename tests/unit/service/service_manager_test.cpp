#include "server/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>

#include "tests/support/test_folder.hpp"

namespace kilokv::server {
namespace {

using test::TestFolder;
using Variables = std::map<std::string, std::string>;

// The variables must outlive the result.
ReadEnvironment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// The socket of a service manager. @NAME: an abstract one.
class ManagerSocket {
 public:
  explicit ManagerSocket(const std::string& name) : descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), bytes), 0) << std::strerror(errno);
  }
  ~ManagerSocket() { ::close(descriptor_); }
  ManagerSocket(const ManagerSocket&) = delete;
  ManagerSocket& operator=(const ManagerSocket&) = delete;

  // "-": there is none.
  std::string take() const {
    char bytes[4096];
    const ssize_t count = ::recv(descriptor_, bytes, sizeof bytes, 0);
    return count < 0 ? "-" : std::string(bytes, static_cast<std::size_t>(count));
  }

 private:
  const int descriptor_;
};

TEST(ServiceManager, WithoutOneNothingIsSent) {
  const Variables none;
  ServiceManager manager(environment_of(none));
  EXPECT_FALSE(manager.present());
  EXPECT_TRUE(manager.problem().ok());
  EXPECT_EQ(manager.watchdog_us(), 0);
  EXPECT_TRUE(manager.ready("").ok());
  EXPECT_TRUE(manager.alive().ok());
}

TEST(ServiceManager, SendsOneDatagramForEachMessage) {
  const TestFolder folder;
  for (const std::string& name : {folder.path("socket"), "@kilokv-test-" + std::to_string(::getpid())}) {
    SCOPED_TRACE(name);
    const ManagerSocket socket(name);
    const Variables variables = {{"NOTIFY_SOCKET", name}};
    ServiceManager manager(environment_of(variables));
    ASSERT_TRUE(manager.present()) << manager.problem().message();
    ASSERT_TRUE(manager.starting("recovering", 1000).ok());
    ASSERT_TRUE(manager.ready("serving\nMAINPID=1").ok());  // a text is no message of its own
    ASSERT_TRUE(manager.alive().ok());
    ASSERT_TRUE(manager.stopping("ending", 2000).ok());
    EXPECT_EQ(socket.take(), "STATUS=recovering\nEXTEND_TIMEOUT_USEC=1000");
    EXPECT_EQ(socket.take(), "READY=1\nSTATUS=serving\\nMAINPID=1");
    EXPECT_EQ(socket.take(), "WATCHDOG=1");
    EXPECT_EQ(socket.take(), "STOPPING=1\nSTATUS=ending\nEXTEND_TIMEOUT_USEC=2000");
    EXPECT_EQ(socket.take(), "-");
  }
}

TEST(ServiceManager, OnlyReadyWaitsForOneThatDoesNotRead) {
  const TestFolder folder;
  const ManagerSocket socket(folder.path("socket"));
  const Variables variables = {{"NOTIFY_SOCKET", folder.path("socket")}};
  ServiceManager manager(environment_of(variables));
  int taken = 0;
  Status status;
  for (; taken < 100000; ++taken) {
    status = manager.alive();
    if (!status.ok()) break;
  }
  EXPECT_EQ(status.code(), StatusCode::internal);
  EXPECT_EQ(status.message(),
            "the service manager does not take \"WATCHDOG=1\" at NOTIFY_SOCKET: Resource temporarily unavailable");
  EXPECT_FALSE(manager.stopping("", 0).ok());
  EXPECT_FALSE(manager.starting("", 0).ok());
  for (; taken > 0; --taken) EXPECT_EQ(socket.take(), "WATCHDOG=1");
  EXPECT_TRUE(manager.alive().ok());
}

TEST(ServiceManager, ASocketThatIsGoneIsAProblemOfTheMessage) {
  const TestFolder folder;
  const Variables variables = {{"NOTIFY_SOCKET", folder.path("socket")}};
  ServiceManager manager(environment_of(variables));
  EXPECT_TRUE(manager.problem().ok());
  EXPECT_EQ(manager.ready("").message(),
            "the service manager does not take \"READY=1\\nSTATUS=\" at NOTIFY_SOCKET: No such file or directory");
}

TEST(ServiceManager, NamesThatAreNoSocketAreRefused) {
  const std::string longest(sizeof(sockaddr_un::sun_path) - 1, '/');
  for (const std::string& name : {std::string(), std::string("/"), std::string("@"), std::string("run/notify"),
                                  std::string("vsock:2:1"), longest + "x"}) {
    SCOPED_TRACE(name);
    const Variables variables = {{"NOTIFY_SOCKET", name}};
    const ServiceManager manager(environment_of(variables));
    EXPECT_FALSE(manager.present());
    EXPECT_EQ(manager.problem().message(),
              "NOTIFY_SOCKET is \"" + name + "\": it must be a path, or @ and an abstract name, of 2 to 107 bytes");
  }
  const Variables variables = {{"NOTIFY_SOCKET", longest}};
  EXPECT_TRUE(ServiceManager(environment_of(variables)).present());
}

TEST(ServiceManager, TheWatchdogIsForOneProcess) {
  const std::string us = std::to_string(::getpid()), another = std::to_string(::getppid());
  struct Case {
    Variables more;
    DurationUs watchdog_us;
    std::string problem;
  };
  const Case cases[] = {
      {{}, 0, ""},
      {{{"WATCHDOG_USEC", "30000000"}}, 30000000, ""},
      {{{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", us}}, 30000000, ""},
      {{{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", another}}, 0, ""},
      {{{"WATCHDOG_USEC", "1s"}},
       0,
       "WATCHDOG_USEC is \"1s\": it must be a number of microseconds from 1 to 9223372036854775807"},
      {{{"WATCHDOG_USEC", "0"}},
       0,
       "WATCHDOG_USEC is \"0\": it must be a number of microseconds from 1 to 9223372036854775807"},
      {{{"WATCHDOG_USEC", "1"}, {"WATCHDOG_PID", "self"}},
       0,
       "WATCHDOG_PID is \"self\": it must be the id of a process"},
  };
  for (const Case& c : cases) {
    Variables variables = {{"NOTIFY_SOCKET", "/run/none"}};
    variables.insert(c.more.begin(), c.more.end());
    const ServiceManager manager(environment_of(variables));
    EXPECT_EQ(manager.watchdog_us(), c.watchdog_us);
    EXPECT_EQ(manager.problem().message(), c.problem);
    EXPECT_TRUE(manager.present());  // READY is sent all the same
  }
}

}  // namespace
}  // namespace kilokv::server
