// The page of the metrics has the room of HttpOptions::kPageBytesMax. So the largest one has to fit, or a scrape gets
// 503.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/monitoring/sources.hpp"
#include "server/service/health.hpp"
#include "server/service/reflection.hpp"

namespace kilokv::server {
namespace {

// Every code and every outcome of every call.
void end_in_every_way(CallMetrics* calls) {
  std::vector<CallMetrics::Method*> methods = {calls->session_requests(), calls->method(kHealthCheckMethod),
                                               calls->method(kHealthWatchMethod), calls->method(kReflectionMethod)};
  for (const CallMetrics::Method& method : calls->methods()) {
    CallMetrics::Method* const found = calls->method("/kilokv.v1.KiloKV/" + method.name());
    if (found == &method) methods.push_back(found);  // "Unknown", too: it is what is found for an unknown path
  }
  ASSERT_EQ(methods.size(), calls->methods().size());
  for (CallMetrics::Method* const method : methods) {
    for (std::size_t code = 0; code < CallMetrics::kCodes; ++code) method->end(method->begin(), code);
  }
}

// Every family, with every label that it can have. A server has fewer owners of memory than this, with shorter names.
std::string page_of(const CallMetrics& calls, bool as_json = false) {
  ServerReport report;
  report.has_database = true;
  for (int i = 0; i < 40; ++i) report.memory.push_back({"an owner with a name, " + std::to_string(i), 1, 1});
  report.database.device.name = "cuda";
  report.database.device.model = std::string(256, 'x');
  const ServerFacts facts{.version = "10.20.30",
                          .commit = std::string(40, 'c'),
                          .strategy = "reservations",
                          .order = "precedence",
                          .device = "cuda:15",
                          .started = 1764000000.5};
  const CoreMetrics core;
  const LogMetrics log;
  Families families;
  add_server(report, facts, log, &families);
  add_calls(report, calls, &families);
  add_connections({}, {}, &families);
  add_pages({}, 1, &families);
  add_certificate(1, &families);
  add_pipeline(report.database, core, {}, facts, &families);
  add_log(report.database, core, log, {}, 1, &families);
  add_backups({}, {}, log, 1, &families);
  add_memory(report, &families);
  add_process(report, facts, &families);
  return as_json ? families.json() : families.text();
}

TEST(LargestPage, FitsIntoItsRoom) {
  CallMetrics calls;
  const std::size_t small = page_of(calls).size();
  end_in_every_way(&calls);
  const std::string page = page_of(calls);
  EXPECT_GT(page.size(), 2 * small) << "most of a large page are calls that ended in different ways";
  // Numbers grow. A counter of 2^53 has 16 digits, and a line here has one or more.
  const auto lines = static_cast<std::size_t>(std::count(page.begin(), page.end(), '\n'));
  constexpr std::size_t kMoreDigits = 15;
  EXPECT_LT(page.size() + lines * kMoreDigits, HttpOptions::kPageBytesMax);
  EXPECT_LT(page_of(calls, true).size() + lines * kMoreDigits, HttpOptions::kPageBytesMax)
      << "the same for the console";
}

}  // namespace
}  // namespace kilokv::server
