#include "client/cli/repeat.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

namespace kilokv::client {
namespace {

constexpr char kClearScreen[] = "\x1b[H\x1b[2J\x1b[3J";

}  // namespace

ExitCode show_repeatedly(const CommonOptions& common, const WatchArguments& watch,
                         const std::function<ExitCode()>& show) {
  const bool is_text = common.output == OutputFormat::text;
  const bool clears = is_text && watch.every_us > 0 && ::isatty(STDOUT_FILENO) != 0;
  auto next = std::chrono::steady_clock::now();
  for (std::uint64_t shown = 1;; ++shown) {
    if (clears) {
      std::fputs(kClearScreen, stdout);
    } else if (is_text && shown > 1) {
      std::fputs("\n", stdout);
    }
    const ExitCode code = show();
    std::cout.flush();
    std::fflush(stdout);
    if (code != ExitCode::ok || watch.every_us == 0 || shown == watch.count || std::ferror(stdout) != 0 ||
        !std::cout.good()) {
      return code;
    }
    next = std::max(next + std::chrono::microseconds(watch.every_us), std::chrono::steady_clock::now());
    std::this_thread::sleep_until(next);
  }
}

}  // namespace kilokv::client
