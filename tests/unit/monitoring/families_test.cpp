#include "server/monitoring/families.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace kilokv::server {
namespace {

TEST(Families, AreWrittenInTheFormOfPrometheus) {
  constexpr std::uint64_t kBounds[] = {10, 250, 1000000};
  Histogram histogram(kBounds);
  for (const std::uint64_t us : {5, 10, 11, 2000000}) histogram.add(us);
  Families families;
  families.counter("a_total", "Counts a").add(3, {{"kind", "x"}, {"name", "quote \" and\nline"}});
  families.gauge("b_bytes", "Is b, in bytes").add(9007199254740991.0);
  families.histogram("c_seconds", "Time of c, in seconds")
      .add(histogram.snapshot(), kMicrosecondsInASecond, {{"k", "v"}});
  families.counter("d_total", "Has no value yet");
  EXPECT_EQ(families.text(),
            "# HELP a_total Counts a\n"
            "# TYPE a_total counter\n"
            "a_total{kind=\"x\",name=\"quote \\\" and\\nline\"} 3\n"
            "# HELP b_bytes Is b, in bytes\n"
            "# TYPE b_bytes gauge\n"
            "b_bytes 9007199254740991\n"
            "# HELP c_seconds Time of c, in seconds\n"
            "# TYPE c_seconds histogram\n"
            "c_seconds_count{k=\"v\"} 4\n"
            "c_seconds_sum{k=\"v\"} 2.000026\n"
            "c_seconds_bucket{k=\"v\",le=\"1e-05\"} 2\n"
            "c_seconds_bucket{k=\"v\",le=\"0.00025\"} 3\n"
            "c_seconds_bucket{k=\"v\",le=\"1\"} 3\n"
            "c_seconds_bucket{k=\"v\",le=\"+Inf\"} 4\n"
            "# HELP d_total Has no value yet\n"
            "# TYPE d_total counter\n");
}

}  // namespace
}  // namespace kilokv::server
