// The commands of kilokv. (main.cpp names their arguments.) Each command connects, does its work, prints, and returns
// the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/output.hpp"
#include "client/command_line/exit_code.hpp"

namespace kilokv::client {

struct CommonOptions {
  ClientOptions server;                  // its endpoint, and how long to wait for it
  std::uint64_t timeout_us = 5'000'000;  // for connecting, and for each request
  OutputFormat output = OutputFormat::text;
  std::string traceparent;  // of all transactions that the command sends; empty: none
  CallOptions call() const {
    CallOptions options;
    options.traceparent = traceparent;
    return options;
  }
};

struct ScanArguments {
  std::string from, to;  // an empty `to` means no upper bound
  std::optional<std::string> prefix;
  std::uint64_t limit = 0;  // pairs; 0: all
  bool reverse = false;
};

struct CancelArguments {
  // If it is 0, the next three name a request of a session. If `request` is 0, too, the filter counts.
  std::uint64_t parked_id = 0;
  std::string session_file;  // has the id of the session; empty: the environment names it
  std::uint64_t request = 0, holder = 0;
  std::optional<std::uint32_t> index;
  ParkedFilter filter;
};

// A command that shows what is now can show it again and again.
struct WatchArguments {
  std::uint64_t every_us = 0;  // 0: it shows it once
  std::uint64_t count = 0;     // how often; 0: until it is ended
};

struct TxnArguments {
  std::string file = "-";    // -: standard input
  bool batch = false;        // sends all transactions as one request
  bool detached = false;     // sends without a session, and transactions go on without their call
  std::string session_file;  // gets the id of the session, as long as an answer is missing; empty: none
};

struct SessionArguments {
  std::string file;           // has the id of the session; empty: the environment names it
  std::uint64_t request = 0;  // only this one; 0: all
};

struct WatchRangeArguments {
  std::string from, to;
  std::optional<std::string> prefix;
  std::string after;          // VERSION or VERSION:WRITES; empty: from now on
  std::string incarnation;    // 32 hexadecimal digits; empty: not checked
  std::uint64_t limit = 0;    // writes; 0: no limit
  std::uint64_t through = 0;  // a version up to which it watches; 0: without end
  bool positions = false;     // prints the position after each answer
};
// Prints writes until a limit is reached or a signal ends the program.
ExitCode run_watch(const CommonOptions& common, const WatchRangeArguments& arguments);

// If `value` is "-", reads it from standard input. Stores an integer if the value is written as one, unless `as_bytes`.
// `ttl_us`: the time to live of the key; 0: it never expires.
ExitCode run_put(const CommonOptions& common, const std::string& key, const std::string& value, bool as_bytes,
                 std::int64_t ttl_us);
// `raw`: prints exactly the bytes of the value of one key.
ExitCode run_get(const CommonOptions& common, const std::vector<std::string>& keys, bool raw);
ExitCode run_del(const CommonOptions& common, const std::vector<std::string>& keys);
ExitCode run_add(const CommonOptions& common, const std::string& key, std::int64_t delta);
ExitCode run_scan(const CommonOptions& common, const ScanArguments& arguments);
ExitCode run_parked_list(const CommonOptions& common);
ExitCode run_parked_cancel(const CommonOptions& common, const CancelArguments& arguments);
ExitCode run_status(const CommonOptions& common, const WatchArguments& watch);
ExitCode run_txn(const CommonOptions& common, const TxnArguments& arguments);
ExitCode run_log_level(const CommonOptions& common, const std::string& level);  // empty: only prints it
ExitCode run_session_attach(const CommonOptions& common, const SessionArguments& arguments);

// Reads the id of a session from the file, or from the environment if `file` is empty. If the result is not ok, a
// message says what is wrong.
ExitCode read_session_id(const std::string& file, std::string* id);

Expected<std::unique_ptr<Client>> connect(const CommonOptions& common);

// The first key after all keys that begin with `prefix`. Empty: there is none.
std::string prefix_end(std::string prefix);

}  // namespace kilokv::client
