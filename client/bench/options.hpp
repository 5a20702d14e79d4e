// The flags of kilokv-bench, and their meaning: one RunOptions for each point of the sweep. Thread safety: none.
#pragma once

#include <string>
#include <vector>

#include "client/bench/run_options.hpp"
#include "client/command_line/cli11.hpp"
#include "client/command_line/server_flags.hpp"

namespace kilokv::bench {

class Flags {
 public:
  // Registers the flags with `command`. With `lists`, every axis takes several values: --batch-size 1,16,128.
  Flags(CLI::App* command, bool lists);
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  // Every combination; the last axis varies fastest. The error names the flag and the values that it takes, or says
  // that the flag has no meaning for any of the workloads, or with --unary.
  client::Expected<std::vector<RunOptions>> runs() const;
  const std::string& json_path() const { return json_path_; }  // "-": standard output; empty: no JSON

 private:
  // The error names a flag that was given although it has no meaning here.
  client::Error check_meaning() const;
  void add_axes(CLI::App* command, bool lists);
  void add_settings(CLI::App* command);

  const CLI::App* const command_;
  client::ServerFlags server_;
  std::vector<std::string> workloads_{"bank"}, distributions_{"uniform"}, encodings_{"columns"};
  std::vector<std::uint64_t> keys_{0};  // 0: the workload's default
  std::vector<std::uint32_t> batch_sizes_{1024}, connections_{1}, in_flight_{4};
  std::vector<double> rates_{0};
  RunOptions base_;
  std::string pair_order_ = "withdrawals-first";
  std::string json_path_;
};

}  // namespace kilokv::bench
