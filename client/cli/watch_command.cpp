// `kilokv watch`: prints the durable writes of a range as they come.
#include <charconv>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "client/cli/commands.hpp"
#include "client/cli/output.hpp"
#include "kilokv/history.hpp"
#include "kilokv/watch.hpp"

namespace kilokv::client {
namespace {

// As `scan` prints a pair, with what a watch knows beyond it. A deleted key has the value null.
std::string write_json(const WatchedWrite& write) {
  std::string line = read_json(write.key, write.value, write.version, write.expires_at_us);
  line.pop_back();
  line += ", \"batch\": " + std::to_string(write.batch) + ", \"rank\": " + std::to_string(write.rank) +
          ", \"batch_time_us\": " + std::to_string(write.batch_time_us);
  if (write.expired) line += ", \"expired\": true";
  return line + '}';
}

std::string write_text(const WatchedWrite& write) {
  const bool is_deleted = std::holds_alternative<std::monostate>(write.value);
  const std::string value = !is_deleted ? value_text(write.value) : write.expired ? "(expired)" : "(deleted)";
  return std::to_string(write.version) + '\t' + key_text(write.key) + '\t' + value;
}

class Printer {
 public:
  Printer(const CommonOptions& common, const WatchRangeArguments& arguments)
      : is_json_(common.output == OutputFormat::json), arguments_(arguments) {}

  // Returns whether more is wanted.
  bool print(const WatchedPart& part) {
    for (const WatchedWrite& write : part.writes) {
      if (arguments_.through != 0 && write.version > arguments_.through) return end();
      std::cout << (is_json_ ? write_json(write) : write_text(write)) << '\n';
      if (++printed_ == arguments_.limit) return end();
    }
    if (arguments_.positions) {
      std::cout << "{\"position\": {\"version\": " << part.position.version << ", \"writes\": " << part.position.writes
                << "}, \"incarnation\": \"" << part.incarnation << "\"}\n";
    }
    const bool is_there = part.position.writes == 0 && part.position.version >= arguments_.through;
    if (arguments_.through != 0 && is_there) return end();
    std::cout.flush();
    return std::cout.good();
  }

 private:
  static bool end() {
    std::cout.flush();
    return false;
  }

  const bool is_json_;
  const WatchRangeArguments& arguments_;
  std::uint64_t printed_ = 0;
};

// VERSION or VERSION:WRITES.
std::optional<WatchPosition> to_position(std::string_view text) {
  WatchPosition position;
  const char* const end = text.data() + text.size();
  std::from_chars_result read = std::from_chars(text.data(), end, position.version);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == ':') {
    read = std::from_chars(read.ptr + 1, end, position.writes);
  }
  return read.ec == std::errc() && read.ptr == end ? std::optional(position) : std::nullopt;
}

}  // namespace

ExitCode run_watch(const CommonOptions& common, const WatchRangeArguments& arguments) {
  if (!arguments.to.empty() && arguments.to < arguments.from) {
    std::cerr << "kilokv: TO " << key_text(arguments.to) << " is before FROM " << key_text(arguments.from)
              << ": a watch goes from FROM up to TO\n";
    return ExitCode::usage;
  }
  const std::optional<WatchPosition> after = to_position(arguments.after);
  if (!arguments.after.empty() && !after) {
    std::cerr << "kilokv: --after " << arguments.after
              << ": it takes VERSION or VERSION:WRITES, which are two whole numbers\n";
    return ExitCode::usage;
  }
  ClientOptions options = common.server;
  options.connect_timeout_us = common.timeout_us;
  options.request_timeout_us = common.timeout_us;
  const auto watch = Watch::connect(options);
  if (!watch) return report(watch.error());
  WatchOptions range;
  range.from = arguments.prefix.value_or(arguments.from);
  range.to = arguments.prefix ? prefix_end(*arguments.prefix) : arguments.to;
  range.after = after;
  range.incarnation = arguments.incarnation;
  Printer printer(common, arguments);
  const Error error = (*watch)->read(range, [&](const WatchedPart& part) { return printer.print(part); });
  return error ? report(error) : ExitCode::ok;
}

}  // namespace kilokv::client
