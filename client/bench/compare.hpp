// `kilokv-bench compare`: two reports of run, sweep or tune, point by point. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "kilokv/error.hpp"

namespace kilokv::bench {

inline constexpr double kCompareThreshold = 0.15;

struct ReportFile {
  std::string name;  // for messages
  std::string json;  // the whole text
};

struct Comparison {
  std::string text, json;
  bool is_worse = false;  // B is worse than A in some number of some point, by more than the limit of this point
};

// Points are matched by their configuration. The runs of one configuration count as repeats. Two numbers differ if the
// larger one is more than 1 + limit times the smaller one. The limit is `threshold`, or the spread of the repeats if
// that is larger and there are three repeats or more. Errors: INVALID_ARGUMENT: a text is no report, or the reports
// have no configuration in common, and one of them has several.
client::Expected<Comparison> compare(const ReportFile& a, const ReportFile& b, double threshold);

}  // namespace kilokv::bench
