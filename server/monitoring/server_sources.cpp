// The sources of the server around the database (sources.hpp).
#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "server/monitoring/sources.hpp"

namespace kilokv::server {
namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }
double yes_or_no(bool value) { return value ? 1 : 0; }

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / kMicrosecondsInASecond;
}

// The descriptors that are open; 0: unknown.
std::uint64_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (folder == nullptr) return 0;
  std::uint64_t count = 0;
  while (const dirent* entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): the folder is our own
    if (entry->d_name[0] != '.') ++count;
  }
  return count - std::min<std::uint64_t>(count, 1);  // one is that of the folder
}

const char* name_of(DatabaseStatus::State state) {
  switch (state) {
    case DatabaseStatus::State::recovering: return "recovering";
    case DatabaseStatus::State::ready: return "ready";
    case DatabaseStatus::State::draining: return "draining";
    case DatabaseStatus::State::stopped: return "stopped";
  }
  return "";
}

}  // namespace

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void add_server(const ServerReport& report, const ServerFacts& facts, const LogMetrics& log, Families* families) {
  families->gauge("kilokv_build_info", "Version and commit of the program; always 1")
      .add(1, {{"version", facts.version}, {"commit", facts.commit}});
  families->gauge("kilokv_strategy_info", "Settings --strategy and --order; always 1")
      .add(1, {{"strategy", facts.strategy}, {"order", facts.order}});
  Families::Family state = families->gauge("kilokv_state", "Whether the server is in this state: 1 or 0");
  for (const auto each : {DatabaseStatus::State::recovering, DatabaseStatus::State::ready,
                          DatabaseStatus::State::draining, DatabaseStatus::State::stopped}) {
    state.add(yes_or_no(report.database.state == each), {{"state", name_of(each)}});
  }
  families->gauge("kilokv_ready", "Whether the server accepts new requests: 1 or 0").add(yes_or_no(report.is_ready));
  families->gauge("kilokv_insecure", "Whether other machines reach the server and it lacks TLS or logins: 1 or 0")
      .add(yes_or_no(report.is_insecure));
  Histogram recovery(kLongTimesUs);  // a process has one
  if (report.has_database) {
    recovery.add(static_cast<std::uint64_t>(report.database.recovery_seconds * kMicrosecondsInASecond));
  }
  families->histogram("kilokv_recovery_seconds", "Time of the recovery at the start, in seconds")
      .add(recovery.snapshot(), kMicrosecondsInASecond);
  families
      ->gauge("kilokv_recovery_running_seconds", "Time that the recovery has taken so far, in seconds; 0 if it is over")
      .add(report.has_database ? 0 : report.uptime_seconds);
  families->gauge("kilokv_recovery_records", "Records of the checkpoint that the recovery has read")
      .add(number(log.recovered_records.load(std::memory_order_relaxed)));
  families->gauge("kilokv_recovery_batches", "Batches after the checkpoint that the recovery has replayed")
      .add(number(log.recovered_batches.load(std::memory_order_relaxed)));
}

// The time of the start must never change: Prometheus takes a change for a restart.
void add_process(const ServerReport& report, const ServerFacts& facts, Families* families) {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  families->counter("process_cpu_seconds_total", "Processor time of the process, of user and system, in seconds")
      .add(seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  families->gauge("process_start_time_seconds", "Time at which the process started, in seconds since 1970")
      .add(facts.started);
  families->gauge("process_resident_memory_bytes", "Resident memory of the process in bytes")
      .add(number(report.resident_bytes));
  families->gauge("process_open_fds", "Descriptors that are open").add(number(open_descriptors()));
  families->gauge("process_max_fds", "Descriptors that may be open").add(number(limit.rlim_cur));
}

void add_memory(const ServerReport& report, Families* families) {
  constexpr std::string_view kData[] = {"table", "keys", "index", "values"};
  Families::Family held = families->gauge("kilokv_memory_bytes", "Memory that a part of the server holds, in bytes");
  std::uint64_t data = 0, data_max = 0;
  for (const MemoryOwner& owner : report.memory) {
    held.add(number(owner.bytes), {{"owner", owner.name}});
    if (std::find(std::begin(kData), std::end(kData), owner.name) != std::end(kData)) data += owner.bytes;
    if (owner.name == "values") data_max = owner.bound_bytes;
  }
  Families::Family bounds =
      families->gauge("kilokv_memory_bound_bytes", "Memory that a part of the server may hold, in bytes");
  for (const MemoryOwner& owner : report.memory) {
    if (owner.bound_bytes > 0) bounds.add(number(owner.bound_bytes), {{"owner", owner.name}});
  }
  families->gauge("kilokv_memory_limit_bytes", "Setting --memory-limit, or what the server chose, in bytes; 0 is none")
      .add(number(report.memory_limit));
  families->gauge("kilokv_data_bytes", "Memory of the data: table, keys, order and values, in bytes").add(number(data));
  families->gauge("kilokv_data_limit_bytes", "Memory that the data may take, in bytes; beyond it, new data is refused")
      .add(number(data_max));
}

void add_calls(const ServerReport& report, const CallMetrics& calls, Families* families) {
  Families::Family ended = families->counter("kilokv_calls_total", "Calls that ended, by the code of gRPC");
  for (const CallMetrics::Method& method : calls.methods()) {
    for (std::size_t code = 0; code < CallMetrics::kCodes; ++code) {
      if (code != 0 && method.ended(code) == 0) continue;
      ended.add(number(method.ended(code)), {{"call", method.name()}, {"code", CallMetrics::name_of_code(code)}});
    }
  }
  Families::Family open = families->gauge("kilokv_calls_in_flight", "Calls that have begun and not ended");
  for (const CallMetrics::Method& method : calls.methods()) {
    open.add(number(method.in_flight()), {{"call", method.name()}});
  }
  Families::Family durations = families->histogram(
      "kilokv_call_duration_seconds", "Time from the headers of a call until its answer is given to gRPC, in seconds");
  for (const CallMetrics::Method& method : calls.methods()) {
    if (!method.is_timed()) continue;
    for (std::size_t i = 0; i < CallMetrics::kOutcomes; ++i) {
      const auto outcome = static_cast<CallMetrics::Outcome>(i);
      const Histogram::Snapshot values = method.duration(outcome);
      if (values.count == 0 && outcome != CallMetrics::Outcome::ok) continue;
      durations.add(values, kMicrosecondsInASecond,
                    {{"call", method.name()}, {"outcome", CallMetrics::name_of(outcome)}});
    }
  }
  Families::Family refusals =
      families->counter("kilokv_refusals_total",
                        "Calls, and requests on streams, that ended with an error, by the reason of the protocol");
  for (const auto& [reason, count] : calls.refusals()) refusals.add(number(count), {{"reason", reason}});
  families->counter("kilokv_logins_refused_total", "Calls and requests for pages without a valid login or certificate")
      .add(number(report.logins_refused));
  families->gauge("kilokv_clients", "Clients with open calls: users, or connections where the server has no logins")
      .add(number(report.clients));
}

void add_connections(const ConnectionCounts& counts, const ServiceOptions& options, Families* families) {
  families->gauge("kilokv_connections", "Open connections of gRPC").add(counts.open);
  families->gauge("kilokv_connections_limit", "Connections of gRPC that may be open (--connections-max)")
      .add(options.connections_max);
  families->counter("kilokv_connections_accepted_total", "Connections of gRPC that were accepted")
      .add(number(counts.accepted));
  families->counter("kilokv_connections_refused_total", "Connections of gRPC that were closed at once, beyond a limit")
      .add(number(counts.refused));
  families->counter("kilokv_connections_cut_off_total", "Connections of gRPC that were closed because of a flood")
      .add(number(counts.cut_off));
}

void add_pages(const HttpCounts& counts, std::uint32_t connections_max, Families* families) {
  families->gauge("kilokv_http_connections", "Open connections of HTTP").add(counts.open);
  families->gauge("kilokv_http_connections_limit", "Connections of HTTP that may be open (--http-connections-max)")
      .add(connections_max);
  families->counter("kilokv_http_connections_accepted_total", "Connections of HTTP that were accepted")
      .add(number(counts.accepted));
  families->counter("kilokv_http_connections_refused_total", "Connections of HTTP that were closed at once")
      .add(number(counts.refused));
  families
      ->counter("kilokv_http_connections_replaced_total",
                "Connections of HTTP that were closed because new ones needed their places")
      .add(number(counts.made_room));
  Families::Family answered =
      families->counter("kilokv_http_requests_total", "Requests over HTTP, by the code of the answer");
  for (std::size_t i = 0; i < kPageCodes.size(); ++i) {
    answered.add(number(counts.answered[i]), {{"code", std::to_string(kPageCodes[i])}});
  }
}

void add_certificate(std::int64_t valid_until, Families* families) {
  families
      ->gauge("kilokv_tls_certificate_expiry_timestamp_seconds",
              "Time at which the certificate of the server expires, in seconds since 1970")
      .add(static_cast<double>(valid_until));
}

}  // namespace kilokv::server
