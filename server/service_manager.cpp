#include "server/service_manager.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>

#include "server/core/one_line.hpp"

namespace kilokv::server {
namespace {

bool parse(std::string_view text, std::int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number > 0;
}

// The error for a variable that the service manager set. No flag of kilokvd changes it.
Status wrong_variable(const char* name, std::string_view value, const std::string& allowed) {
  return {StatusCode::invalid_argument, std::string(name) + " is \"" + one_line(value) + "\": it must be " + allowed};
}

}  // namespace

ServiceManager::ServiceManager(const ReadEnvironment& environment) {
  const char* const name = environment("NOTIFY_SOCKET");
  if (name == nullptr) return;
  problem_ = find_socket(name);
  if (problem_.ok()) problem_ = find_watchdog(environment);
}

ServiceManager::~ServiceManager() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// @NAME stands for the abstract name, which begins with a zero byte and has no zero byte at its end.
Status ServiceManager::find_socket(std::string_view name) {
  if (name.size() < 2 || (name.front() != '/' && name.front() != '@') || name.size() >= sizeof address_.sun_path) {
    return wrong_variable(
        "NOTIFY_SOCKET", name,
        "a path, or @ and an abstract name, of 2 to " + std::to_string(sizeof address_.sun_path - 1) + " bytes");
  }
  address_.sun_family = AF_UNIX;
  std::memcpy(address_.sun_path, name.data(), name.size());
  if (name.front() == '@') address_.sun_path[0] = '\0';
  address_bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor_ >= 0) return {};
  return {StatusCode::internal,
          "cannot make a socket for the service manager: " + std::generic_category().message(errno)};
}

// With WATCHDOG_PID, only that process has to send. A child that inherits the variables must not.
Status ServiceManager::find_watchdog(const ReadEnvironment& environment) {
  const char* const time = environment("WATCHDOG_USEC");
  if (time == nullptr) return {};
  const char* const process = environment("WATCHDOG_PID");
  std::int64_t wanted = 0;
  if (process != nullptr && !parse(process, &wanted)) {
    return wrong_variable("WATCHDOG_PID", process, "the id of a process");
  }
  if (process != nullptr && wanted != ::getpid()) return {};
  if (parse(time, &watchdog_us_)) return {};
  watchdog_us_ = 0;
  return wrong_variable("WATCHDOG_USEC", time,
                        "a number of microseconds from 1 to " + std::to_string(std::numeric_limits<DurationUs>::max()));
}

Status ServiceManager::starting(std::string_view status, DurationUs more_us) {
  return send("STATUS=" + one_line(status) + "\nEXTEND_TIMEOUT_USEC=" + std::to_string(more_us), MSG_DONTWAIT);
}

Status ServiceManager::ready(std::string_view status) { return send("READY=1\nSTATUS=" + one_line(status), 0); }

Status ServiceManager::stopping(std::string_view status, DurationUs more_us) {
  return send("STOPPING=1\nSTATUS=" + one_line(status) + "\nEXTEND_TIMEOUT_USEC=" + std::to_string(more_us),
              MSG_DONTWAIT);
}

Status ServiceManager::alive() { return send("WATCHDOG=1", MSG_DONTWAIT); }

Status ServiceManager::send(const std::string& message, int flags) const {
  if (!present()) return {};
  for (;;) {
    const ssize_t sent = ::sendto(descriptor_, message.data(), message.size(), flags | MSG_NOSIGNAL,
                                  reinterpret_cast<const sockaddr*>(&address_), address_bytes_);
    if (sent == static_cast<ssize_t>(message.size())) return {};
    if (sent < 0 && errno == EINTR) continue;
    return {StatusCode::internal, "the service manager does not take \"" + one_line(message) +
                                      "\" at NOTIFY_SOCKET: " + std::generic_category().message(errno)};
  }
}

}  // namespace kilokv::server
