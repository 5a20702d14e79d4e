#include "server/memory_plan.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "server/core/memory/memory_bounds.hpp"
#include "server/core/unit_text.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// The defaults of the bounds are for this limit.
constexpr std::uint64_t kWholeDefaults = std::uint64_t{16} << 30;
constexpr std::uint64_t kDataLeast = 16 * kMiB;

// A bound whose default is cut.
template <class Number>
struct Bound {
  const char* setting;  // without the dashes; empty: it cannot be set
  Number* value;
  Number least;
};

template <class Number>
void cut(const Bound<Number>& bound, std::uint64_t limit, const std::set<std::string>& given) {
  if (limit >= kWholeDefaults || given.contains(bound.setting)) return;
  const double part = static_cast<double>(limit) / static_cast<double>(kWholeDefaults);
  const auto in_proportion = static_cast<Number>(static_cast<double>(*bound.value) * part);
  *bound.value = std::min(*bound.value, std::max(in_proportion, bound.least));
}

void cut_bounds(std::uint64_t limit, ServerOptions* options) {
  DatabaseOptions& core = options->database;
  ServiceOptions& service = options->service;
  StorageOptions& storage = options->storage;
  for (const Bound<std::uint64_t>& bound : {Bound<std::uint64_t>{"queue-bytes-max", &core.queue_bytes_max, 16 * kMiB},
                                            {"parked-bytes-max", &core.parked_bytes_max, 8 * kMiB},
                                            {"session-bytes-total-max", &core.session_bytes_total_max, 8 * kMiB},
                                            {"sessions-max", &core.sessions_max, 1000},
                                            {"batch-max-reads", &core.batch_max_reads, 8192},
                                            {"uploads-bytes-max", &core.uploads_bytes_max, 8 * kMiB},
                                            {"snapshot-bytes-max", &core.snapshot_bytes_max, 8 * kMiB},
                                            {"batch-max-bytes", &core.batch_max_bytes, kMiB},
                                            {"", &core.pools_bytes_max, 8 * kMiB},
                                            {"", &core.dropped_bytes_max, kMiB},
                                            {"calls-bytes-max", &service.calls_bytes_max, 8 * kMiB},
                                            {"answers-bytes-max", &service.answers_bytes_max, 16 * kMiB},
                                            {"grpc-memory-max", &service.grpc_memory_max, 32 * kMiB},
                                            {"log-buffer", &storage.log_buffer_bytes, 2 * kMiB},
                                            {"state-buffer", &storage.state_buffer_bytes, 4 * kMiB}}) {
    cut(bound, limit, options->given);
  }
  cut(Bound<std::uint32_t>{"scans-in-flight-max", &core.scans_in_flight_max, 2}, limit, options->given);
  // With TLS a connection takes more, and with a client's certificate twice as much again.
  const std::uint32_t connections_least = !service.tls.enabled() ? 512 : service.tls.client_ca_file.empty() ? 476 : 222;
  cut(Bound<std::uint32_t>{"connections-max", &service.connections_max, connections_least}, limit, options->given);
  cut(Bound<std::uint32_t>{"http-connections-max", &options->http.http_connections_max, 12}, limit, options->given);
}

std::uint64_t sum_of(const ServerOptions& options) {
  std::uint64_t sum = 0;
  for (const MemoryOwner& owner : memory_bounds(options.database)) sum += owner.bound_bytes;
  for (const MemoryOwner& owner : memory_bounds(options)) sum += owner.bound_bytes;
  return sum;
}

// What a limit leaves for data, if it leaves enough; else 0.
std::uint64_t data_of(std::uint64_t limit, ServerOptions options) {
  cut_bounds(limit, &options);
  options.database.data_bytes_max = 0;
  const std::uint64_t rest = sum_of(options);
  return limit >= rest + kDataLeast ? limit - rest : 0;
}

// The least limit that leaves enough for data. What a limit leaves grows with the limit.
std::uint64_t least_limit(const ServerOptions& options) {
  std::uint64_t too_low = 0, enough = std::uint64_t{1} << 61;
  while (enough - too_low > 1) {
    const std::uint64_t middle = too_low + (enough - too_low) / 2;
    (data_of(middle, options) > 0 ? enough : too_low) = middle;
  }
  return (enough + kMiB - 1) / kMiB * kMiB;
}

std::string text_of(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

Status too_low(std::uint64_t limit, const ServerOptions& options) {
  ServerOptions cut = options;
  cut_bounds(limit, &cut);
  cut.database.data_bytes_max = 0;
  std::string list;
  std::vector<MemoryOwner> owners = memory_bounds(cut.database);
  for (MemoryOwner& owner : memory_bounds(cut)) owners.push_back(std::move(owner));
  for (const MemoryOwner& owner : owners) {
    if (owner.bound_bytes > 0) list += (list.empty() ? "" : ", ") + owner.name + " " + text_of(owner.bound_bytes);
  }
  return Status::invalid({"--memory-limit",
                          "at least " + format_size(least_limit(options)) +
                              " with these settings, because these bounds leave too little for data: " + list,
                          text_of(limit), "--memory-limit"});
}

}  // namespace

std::uint64_t storage_bound_of(const ServerOptions& options) {
  return options.storage.memory_bound(kStoredValueParts * options.database.batch_max_bytes);
}

std::uint64_t http_bound_of(const ServerOptions& options) {
  const TlsOptions& tls = options.service.tls;
  return options.http.memory_bound(tls.enabled(), !tls.client_ca_file.empty());
}

std::vector<MemoryOwner> memory_bounds(const ServerOptions& options) {
  const ServiceOptions& service = options.service;
  return {{"connections", 0, service.connection_bytes(service.connections_max)},
          {"calls", 0, service.calls_bytes_max},
          {"answers", 0, service.answers_bytes_max},
          {"grpc", 0, service.grpc_memory_max},
          {"decoding", 0, service.decoding_bytes()},
          {"http", 0, http_bound_of(options)},
          {"storage", 0, storage_bound_of(options)},
          {"process", kProcessBytes, kProcessBytes}};
}

Status plan_memory(std::uint64_t usable_bytes, ServerOptions* options) {
  std::uint64_t& limit = options->database.memory_limit;
  if (limit == 0) limit = usable_bytes / 100 * kLimitPercent;
  if (limit == 0) return {};
  const std::uint64_t data = data_of(limit, *options);
  if (data == 0) return too_low(limit, *options);
  cut_bounds(limit, options);
  DatabaseOptions& core = options->database;
  core.data_bytes_max = data;
  // One session cannot have more than all of them.
  core.session_bytes_max = std::min(core.session_bytes_max, core.session_bytes_total_max);
  core.session_uploads_bytes_max = std::min(core.session_uploads_bytes_max, core.uploads_bytes_max);
  return {};
}

}  // namespace kilokv::server
