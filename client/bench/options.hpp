// The flags of kilokv-bench run, sweep and tune, and their meaning: one RunOptions for each point. Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include "client/bench/run_options.hpp"
#include "client/bench/tune.hpp"
#include "client/command_line/cli11.hpp"
#include "client/command_line/server_flags.hpp"

namespace kilokv::bench {

// run: one point. sweep: every axis takes several values, as in --batch-size 1,16,128. tune: the sizes take several,
// and there are no flags of open loops, of single calls and of histories.
enum class Purpose { run, sweep, tune };

class Flags {
 public:
  // Registers the flags with `command`.
  Flags(CLI::App* command, Purpose purpose);
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // Every combination; the last axis varies fastest. The error names the flag and the values that it takes, or says
  // that the flag has no meaning for any of the workloads, or with --unary.
  client::Expected<std::vector<RunOptions>> runs() const;
  // Requires: the purpose is tune. The same points, and how they are tuned. Errors as in runs(). FAILED_PRECONDITION:
  // the own server cannot be started.
  client::Expected<TuneOptions> tune() const;
  const std::string& json_path() const { return json_path_; }  // "-": standard output; empty: no JSON
  const std::string& csv_path() const { return csv_path_; }    // likewise
  const std::string& html_path() const { return html_path_; }  // likewise; tune has none

 private:
  // The error names a flag that was given although it has no meaning here.
  client::Error check_meaning() const;
  void add_axes(CLI::App* command);
  void add_settings(CLI::App* command);
  void add_workload_settings(CLI::App* command);
  void add_outputs(CLI::App* command);
  void add_tune(CLI::App* command);
  // Whether tune starts its own server, and what is wrong with its flags.
  bool has_own_server() const;
  client::Error check_own_server(const std::string& program) const;

  const CLI::App* const command_;
  const Purpose purpose_;
  client::ServerFlags server_;
  std::vector<std::string> workloads_{"bank"}, distributions_{"uniform"}, encodings_{"columns"};
  std::vector<std::uint64_t> keys_{0};  // 0: the workload's default
  std::vector<std::uint32_t> batch_sizes_{1024}, server_batch_max_{0}, connections_{1}, in_flight_{4};
  std::vector<double> rates_{0};
  RunOptions base_;
  std::string pair_order_ = "withdrawals-first";
  std::string json_path_, csv_path_, html_path_;
  TuneOptions tune_;
};

}  // namespace kilokv::bench
