// Tells the service manager (systemd) what kilokvd does: it starts, is ready, stops, is alive. See sd_notify(3).
//
// Each message is one datagram to the socket that $NOTIFY_SOCKET names. The protocol is stable, and systemd describes
// it for programs that do not use libsystemd. That library brings four others with it, which a relocatable archive
// would have to contain. So kilokvd sends the datagrams itself.
//
// A message that is not taken returns a Status. That is no reason to stop: clients are served without a service
// manager. Only ready() may block: the others are lost if nobody reads the socket. Thread safety: any thread.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/config.hpp"

namespace kilokv::server {

class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. problem() says what is wrong with them.
  explicit ServiceManager(const ReadEnvironment& environment);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Whether there is a service manager that wants messages.
  bool present() const { return descriptor_ >= 0; }
  const Status& problem() const { return problem_; }
  // The service manager ends a server that is not alive() for this time. 0: it does not.
  DurationUs watchdog_us() const { return watchdog_us_; }

  // All of these do nothing if no service manager is present. `status`: a line for people, which systemctl status
  // shows. `more_us`: the server may take this time until the next message, also if that is after the time limit of the
  // start, or of the end.
  Status starting(std::string_view status, DurationUs more_us);
  Status ready(std::string_view status);
  Status stopping(std::string_view status, DurationUs more_us);
  Status alive();

 private:
  Status find_socket(std::string_view name);
  Status find_watchdog(const ReadEnvironment& environment);
  Status send(const std::string& message, int flags) const;

  sockaddr_un address_ = {};
  socklen_t address_bytes_ = 0;
  int descriptor_ = -1;
  DurationUs watchdog_us_ = 0;
  Status problem_;
};

}  // namespace kilokv::server
