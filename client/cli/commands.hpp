// The commands of kilokv, apart from how the command line names their arguments (main.cpp). Each connects, does its
// work, prints, and returns the code to exit with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/output.hpp"
#include "client/command_line/exit_code.hpp"

namespace kilokv::client {

struct CommonOptions {
  ClientOptions server;                  // where it is, and how long to wait for it
  std::uint64_t timeout_us = 5'000'000;  // of connecting, and of each request
  OutputFormat output = OutputFormat::text;
};

struct ScanArguments {
  std::string from, to;  // to empty: no upper bound
  std::optional<std::string> prefix;
  std::uint64_t limit = 0;  // pairs; 0: all
};

struct CancelArguments {
  std::uint64_t parked_id = 0;  // or, when 0:
  std::string session;
  std::uint64_t request = 0;
  std::optional<std::uint32_t> index;
};

struct TxnArguments {
  std::string file = "-";  // -: standard input
  bool batch = false;      // all lines as one request
};

// `value` "-" is read from standard input; an integer if it is written as one, unless `as_bytes`.
ExitCode run_put(const CommonOptions& common, const std::string& key, const std::string& value, bool as_bytes);
ExitCode run_get(const CommonOptions& common, const std::vector<std::string>& keys);
ExitCode run_del(const CommonOptions& common, const std::vector<std::string>& keys);
ExitCode run_add(const CommonOptions& common, const std::string& key, std::int64_t delta);
ExitCode run_scan(const CommonOptions& common, const ScanArguments& arguments);
ExitCode run_parked_list(const CommonOptions& common);
ExitCode run_parked_cancel(const CommonOptions& common, const CancelArguments& arguments);
ExitCode run_status(const CommonOptions& common);
ExitCode run_txn(const CommonOptions& common, const TxnArguments& arguments);

Expected<std::unique_ptr<Client>> connect(const CommonOptions& common);

// The first key after all that begin with `prefix`; empty: there is none.
std::string prefix_end(std::string prefix);

}  // namespace kilokv::client
