// gRPC's health check: load balancers and probes ask whether the server serves. gRPC's own service for it is not used,
// because its calls would be in no account: parts of their messages, and the calls themselves, could fill the memory.
//
// A check needs no login. The server knows two names: the empty one, and that of the service of the database. Both have
// the same state.
//
// Thread safety: all members.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "server/service/call_environment.hpp"

namespace kilokv::server {

inline constexpr char kHealthCheckMethod[] = "/grpc.health.v1.Health/Check";
inline constexpr char kHealthWatchMethod[] = "/grpc.health.v1.Health/Watch";

class HealthWatch;

class Health {
 public:
  static constexpr std::uint64_t kRequestBytesMax = 1024;

  // At first, the server does not serve.
  void set_serving(bool serving);
  bool serving() const { return serving_.load(); }
  bool has_served() const { return has_served_.load(); }  // now, or before

  // Calls begin. Requires: this object and `environment` outlive them.
  grpc::ServerGenericBidiReactor* take_check(CallContext* context, CallEnvironment* environment);
  grpc::ServerGenericBidiReactor* take_watch(CallContext* context, CallEnvironment* environment);

  // For the calls. A watch is told of each change from watch() on.
  void watch(const std::shared_ptr<HealthWatch>& watch);
  void unwatch(HealthWatch* watch);

 private:
  std::atomic<bool> serving_{false}, has_served_{false};
  std::mutex mutex_;
  std::unordered_map<HealthWatch*, std::weak_ptr<HealthWatch>> watches_;
};

}  // namespace kilokv::server
