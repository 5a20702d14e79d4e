// Role: see call_metrics.hpp.
#include "server/service/call_metrics.hpp"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <chrono>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "server/core/metrics.hpp"
#include "server/service/health.hpp"
#include "server/service/reflection.hpp"
#include "server/service/status_map.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kCallTimesUs[] = {100,   250,    500,    1000,   2500,    5000,    10000,   25000,
                                          50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

constexpr std::array<const char*, CallMetrics::kCodes> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

CallMetrics::Outcome outcome_of(std::size_t code) {
  switch (static_cast<grpc::StatusCode>(code)) {
    case grpc::StatusCode::OK: return CallMetrics::Outcome::ok;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAVAILABLE: return CallMetrics::Outcome::refused;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED: return CallMetrics::Outcome::cancelled;
    default: return CallMetrics::Outcome::error;
  }
}

}  // namespace

const char* CallMetrics::name_of(Outcome outcome) {
  constexpr std::array<const char*, kOutcomes> kNames = {"ok", "refused", "cancelled", "error"};
  return kNames[static_cast<std::size_t>(outcome)];
}

const char* CallMetrics::name_of_code(std::size_t code) { return kCodeNames[code]; }

CallMetrics::Method::Duration::Duration() : Histogram(kCallTimesUs) {}

std::int64_t CallMetrics::Method::now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

void CallMetrics::Method::end(std::int64_t begun_us, std::size_t code) {
  ended_[std::min(code, kCodes - 1)].fetch_add(1, std::memory_order_relaxed);
  if (is_timed_) durations_[static_cast<std::size_t>(outcome_of(code))].add_time(begun_us, now_us());
}

// The ends are read first: then there are never more of them.
std::uint64_t CallMetrics::Method::in_flight() const {
  std::uint64_t ended = 0;
  for (const auto& of_code : ended_) ended += of_code.load(std::memory_order_acquire);
  const std::uint64_t begun = begun_.load(std::memory_order_relaxed);
  return begun - std::min(begun, ended);
}

CallMetrics::CallMetrics() {
  const google::protobuf::ServiceDescriptor* const service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(v1::KiloKV::service_full_name());
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor* const method = service->method(i);
    add(method->name(), '/' + service->full_name() + '/' + method->name(), !method->client_streaming());
  }
  session_requests_ = add("SessionRequest", {}, true);
  add("HealthCheck", kHealthCheckMethod, true);
  add("HealthWatch", kHealthWatchMethod, false);
  add("Reflection", kReflectionMethod, false);
  unknown_ = add("Unknown", {}, true);
}

CallMetrics::Method* CallMetrics::add(std::string name, const std::string& path, bool is_timed) {
  Method* const method = &methods_.emplace_back(std::move(name), is_timed);
  if (!path.empty()) paths_.emplace(path, method);
  return method;
}

CallMetrics::Method* CallMetrics::method(const std::string& path) {
  const auto found = paths_.find(path);
  return found == paths_.end() ? unknown_ : found->second;
}

void CallMetrics::refuse(const Status& status) {
  if (status.ok() || status.code() == StatusCode::cancelled) return;
  const auto number = static_cast<std::size_t>(to_proto_reason(status.reason()));
  refusals_[std::min(number, kReasonsMax - 1)].fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::pair<std::string, std::uint64_t>> CallMetrics::refusals() const {
  constexpr std::size_t kPrefix = sizeof("ERROR_REASON_") - 1;
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  const google::protobuf::EnumDescriptor* const reasons = v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons->value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor* const reason = reasons->value(i);
    if (reason->number() == v1::ERROR_REASON_CANCELLED) continue;
    const auto number = std::min(static_cast<std::size_t>(reason->number()), kReasonsMax - 1);
    counts.emplace_back(reason->name().substr(kPrefix), refusals_[number].load(std::memory_order_relaxed));
  }
  return counts;
}

}  // namespace kilokv::server
