// The demo's report, for people and for programs, and its progress while it runs. Thread safety: pure functions, but
// for ProgressPrinter.
#pragma once

#include <string>

#include "client/bank/demo.hpp"

namespace kilokv::bank {

std::string to_text(const DemoReport& report);
std::string json_text(const DemoReport& report);  // JSON, indented

// Prints progress: on a terminal one line that is drawn again and again, elsewhere a line every second. Events get
// their own lines. Thread safety: none.
class ProgressPrinter {
 public:
  ProgressPrinter(bool terminal, std::int64_t duration_us) : terminal_(terminal), duration_us_(duration_us) {}
  void print(const DemoProgress& progress);
  void finish();  // clears the line

 private:
  std::string line(const DemoProgress& progress);

  const bool terminal_;
  const std::int64_t duration_us_;
  std::int64_t next_us_ = 0, last_us_ = 0;
  std::uint64_t last_answers_ = 0;
};

}  // namespace kilokv::bank
