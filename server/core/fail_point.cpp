#include "server/core/fail_point.hpp"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kilokv::server {
namespace {

struct FailPoint {
  enum class Action : std::uint8_t { kill, error, hang, always };
  std::string name;
  Action action = Action::always;
  std::uint64_t at = 1;
  std::uint64_t passes = 0;
};

struct FailPoints {
  std::mutex mutex;
  std::vector<FailPoint> points;
};

// Never destroyed, because threads may pass a point while the process ends.
FailPoints& fail_points() {
  static auto* const points = new FailPoints;
  return *points;
}

Status malformed(std::string_view entry) {
  return Status::invalid({.field = "KILOKV_FAIL_POINTS entry",
                          .limit = "NAME=kill[:N], NAME=error[:N], NAME=hang[:N] or NAME=always, N from 1",
                          .actual = std::string(entry),
                          .setting = "KILOKV_FAIL_POINTS"});
}

Result<FailPoint> parse(std::string_view entry) {
  const std::size_t equals = entry.find('=');
  if (equals == 0 || equals == std::string_view::npos) return malformed(entry);
  FailPoint point;
  point.name = entry.substr(0, equals);
  std::string_view action = entry.substr(equals + 1);
  if (const std::size_t colon = action.find(':'); colon != std::string_view::npos) {
    const std::string_view count = action.substr(colon + 1);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), point.at);
    if (error != std::errc() || end != count.data() + count.size() || point.at == 0) return malformed(entry);
    action = action.substr(0, colon);
    if (action == "always") return malformed(entry);
  }
  if (action == "kill")
    point.action = FailPoint::Action::kill;
  else if (action == "error")
    point.action = FailPoint::Action::error;
  else if (action == "hang")
    point.action = FailPoint::Action::hang;
  else if (action != "always")
    return malformed(entry);
  return point;
}

bool set_from_environment() {
  const char* text = std::getenv("KILOKV_FAIL_POINTS");  // NOLINT(concurrency-mt-unsafe): nothing sets a variable
  if (text == nullptr) return false;
  const Status status = set_fail_points(text);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::_Exit(2);
  }
  return fail_points_set();
}

}  // namespace

namespace internal {

std::atomic<bool> fail_points_set{false};
[[maybe_unused]] const bool kSetFromEnvironment = set_from_environment();

bool pass_fail_point(std::string_view name) {
  FailPoints& all = fail_points();
  std::unique_lock lock(all.mutex);
  for (FailPoint& point : all.points) {
    if (point.name != name) continue;
    ++point.passes;
    if (point.action == FailPoint::Action::always) return true;
    if (point.passes != point.at) continue;
    if (point.action == FailPoint::Action::error) return true;
    if (point.action == FailPoint::Action::kill) std::raise(SIGKILL);
    lock.unlock();  // other threads pass their points meanwhile
    for (;;) ::pause();
  }
  return false;
}

}  // namespace internal

Status set_fail_points(std::string_view text) {
  std::vector<FailPoint> points;
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view entry = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (entry.empty()) continue;
    Result<FailPoint> point = parse(entry);
    if (!point.ok()) return point.status();
    points.push_back(std::move(*point));
  }
  FailPoints& all = fail_points();
  const std::lock_guard lock(all.mutex);
  all.points = std::move(points);
  internal::fail_points_set.store(!all.points.empty(), std::memory_order_relaxed);
  return {};
}

}  // namespace kilokv::server
