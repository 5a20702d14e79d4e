// Role: see progress.hpp.
#include "client/cli/bulk/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "client/measure/clock.hpp"
#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

constexpr std::int64_t kIntervalUs = 1'000'000;

}  // namespace

bool shows_progress(const ProgressFlags& flags) {
  return !flags.never && (flags.always || ::isatty(STDERR_FILENO) != 0);
}

ProgressLine::ProgressLine(bool is_shown)
    : is_shown_(is_shown), began_us_(bench::steady_now_us()), due_us_(began_us_ + kIntervalUs) {}

void ProgressLine::tick(const std::function<std::string()>& line) {
  if (!is_shown_) return;
  const std::int64_t now_us = bench::steady_now_us();
  if (now_us < due_us_) return;
  due_us_ = now_us + kIntervalUs;
  std::cerr << bench::seconds(now_us - began_us_, 1) + "  " + line() + "\n";
}

std::int64_t ProgressLine::elapsed_us() const { return bench::steady_now_us() - began_us_; }

double rate_of(std::uint64_t count, std::int64_t elapsed_us) {
  return static_cast<double>(count) * 1e6 / static_cast<double>(std::max<std::int64_t>(elapsed_us, 1));
}

std::string rate_text(std::uint64_t count, std::int64_t elapsed_us) {
  return bench::grouped(static_cast<std::uint64_t>(rate_of(count, elapsed_us))) + "/s";
}

}  // namespace kilokv::client
