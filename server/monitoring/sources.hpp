// The sources of the metrics: each adds the families of one part of the server. docs/monitoring.md lists all of them.
// A family without a value yet, such as one about the data while the server recovers, is left out.
//
// Thread safety: pure functions, but for the clock and the state of the process.
#pragma once

#include <cstdint>
#include <string>

#include "server/core/database_status.hpp"
#include "server/core/metrics.hpp"
#include "server/core/options.hpp"
#include "server/edge/connections.hpp"
#include "server/http/http_server.hpp"
#include "server/monitoring/families.hpp"
#include "server/service/backup_metrics.hpp"
#include "server/service/call_metrics.hpp"
#include "server/service/options.hpp"
#include "server/service/server_report.hpp"

namespace kilokv::server {

// What never changes while the server runs.
struct ServerFacts {
  std::string version, commit;
  std::string strategy, order, device;  // the settings with these names
  double started = 0;                   // when the process started, in seconds since 1970
};
double seconds_since_1970();
void add_server(const ServerReport& report, const ServerFacts& facts, const LogMetrics& log, Families* families);
void add_process(const ServerReport& report, const ServerFacts& facts, Families* families);
void add_memory(const ServerReport& report, Families* families);

void add_calls(const ServerReport& report, const CallMetrics& calls, Families* families);
void add_connections(const ConnectionCounts& counts, const ServiceOptions& options, Families* families);
void add_pages(const HttpCounts& counts, std::uint32_t connections_max, Families* families);
// In seconds since 1970.
void add_certificate(std::int64_t valid_until, Families* families);

// These need a database.
void add_pipeline(const DatabaseStatus& status, const CoreMetrics& core, const DatabaseOptions& options,
                  const ServerFacts& facts, Families* families);
void add_log(const DatabaseStatus& status, const CoreMetrics& core, const LogMetrics& log,
             const DatabaseOptions& options, std::uint64_t disk_reserve_bytes, Families* families);
// `lag_max`: --archive-lag-max.
void add_backups(const BackupMetrics& backups, const ArchiveUsage& archive, const LogMetrics& log,
                 std::uint64_t lag_max, Families* families);

}  // namespace kilokv::server
