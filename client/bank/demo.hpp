// The demo. Many clients move money through a server that is killed and started again in the middle. Then an audit
// compares the books with the answers that the clients got, and proves that not a cent was lost.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/bank/audit.hpp"
#include "client/bank/demo_books.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bank {

struct DemoOptions {
  std::string endpoint;                  // HOST:PORT of a running server; empty: the demo starts its own
  std::uint64_t wait_for_server_us = 0;  // as in ClientOptions
  client::TlsOptions tls;                // likewise; the demo's own server has no TLS
  std::string token;                     // likewise; the demo's own server has no logins
  std::string server;                    // path of kilokvd
  std::string data_dir;                  // of the demo's own server; empty: a temporary one, removed after a good end
  std::int64_t duration_us = 10'000'000;
  std::uint32_t clients = 16;
  std::uint32_t accounts = 1'000;
  std::uint32_t request_transactions = 16;
  std::uint64_t seed = 1;
  std::string console;  // HOST:PORT of the console of the demo's own server, with a kill button; empty: as kilokvd does
  bool kill = true;     // kills the demo's own server at half time
  std::int64_t give_up_after_us = 60'000'000;
};

struct KillReport {
  std::uint32_t times = 0;
  std::int64_t at_us = 0;               // the last time, since the clients began
  std::int64_t listening_after_us = 0;  // since the kill
  std::int64_t answers_after_us = 0;    // the longest time without any answer
};

struct Check {
  std::string name, detail;
  bool holds = false;
};

struct DemoReport {
  DemoOptions options;
  client::ServerStatus server;
  std::int64_t elapsed_us = 0;
  Books books{0};
  Cents opened = 0;  // all balances at the start
  KillReport kill;
  AuditReport audit;
  std::int64_t audit_us = 0;
  std::vector<Check> checks;
  std::string data_dir;  // kept after a bad end; empty: nothing was kept
  bool proven() const;   // all checks hold
};

// The current state, for a progress line. Numbers count since the clients began.
struct DemoProgress {
  std::int64_t elapsed_us = 0;
  std::uint64_t answers = 0;
  std::string event;  // if not empty, an event that gets its own line
};

// Runs the demo. An Error means that it ended before the audit.
client::Expected<DemoReport> run_demo(const DemoOptions& options,
                                      const std::function<void(const DemoProgress&)>& progress);

}  // namespace kilokv::bank
