// The commands kilokv export and kilokv import (docs/bulk.md). Each connects, does its work, prints, and returns the
// exit code. bulk_flags.hpp has their arguments.
#pragma once

#include <optional>
#include <string>

#include "client/cli/bulk/importer.hpp"
#include "client/cli/bulk/progress.hpp"
#include "client/cli/commands.hpp"

namespace kilokv::client {

struct ExportArguments {
  std::string file = "-";  // -: standard output
  std::optional<BulkFormat> format;
  char separator = ',';  // of CSV
  std::string from, to;  // an empty `to` means no upper bound
  std::optional<std::string> prefix;
  ProgressFlags progress;
};

struct ImportArguments {
  std::string file = "-";  // -: standard input
  std::optional<BulkFormat> format;
  ImportOptions options;
  ProgressFlags progress;
};

ExitCode run_export(const CommonOptions& common, const ExportArguments& arguments);
ExitCode run_import(const CommonOptions& common, const ImportArguments& arguments);

// The format that the name of a file ends with: .csv, .json, .jsonl or .ndjson. Empty: another name.
std::optional<BulkFormat> format_of(const std::string& file);

}  // namespace kilokv::client
