// What a tune found, for people and for programs. Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/bench/tune.hpp"

namespace kilokv::bench {

// What can be said of the runs. A missing choice is one that cannot be made; `sentences` say why.
struct Advice {
  std::optional<Choice> choice;      // the smallest size within 5% of the best
  std::optional<Choice> under_goal;  // the fastest size that meets --p99-goal
  std::vector<std::string> sentences;
  bool complete = false;  // whether each recommendation that was asked for is made
};

Advice advise(const TuneReport& report);

// What a tune will do, and how long it takes: a line.
std::string plan_text(const TuneOptions& options);
std::string to_text(const TuneReport& report);
std::string json_text(const TuneReport& report);

}  // namespace kilokv::bench
