#include "server/core/options.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "server/core/environment.hpp"
#include "server/core/unit_text.hpp"

namespace kilokv::server {
namespace {

// Each setting at the most that it may be, and just beyond.
TEST(DatabaseOptionsTest, EverySettingHasAnUpperLimit) {
  struct Case {
    const char* setting;
    std::uint64_t most;
    std::function<void(DatabaseOptions*, std::uint64_t)> set;
  };
  const auto most_us = static_cast<std::uint64_t>(kDurationUsMax);
  const auto us = [](std::uint64_t value) { return static_cast<DurationUs>(value); };
  const auto narrow = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  for (const Case& c : {
           Case{"--batch-max-transactions", 1 << 24, [&](auto*o, auto v) { o->batch_max_transactions = narrow(v); }},
           {"--batch-max-bytes", std::uint64_t{1} << 27, [](auto*o, auto v) { o->batch_max_bytes = v; }},
           {"--batch-max-reads", 1 << 21, [](auto*o, auto v) { o->batch_max_reads = v; }},
           {"--batch-max-delay", most_us, [&](auto*o, auto v) { o->batch_max_delay_us = us(v); }},
           {"--batch-in-flight-max", 1024, [&](auto*o, auto v) { o->batch_in_flight_max = narrow(v); }},
           {"--queue-transactions-max", std::uint64_t{1} << 32, [](auto*o, auto v) { o->queue_transactions_max = v; }},
           {"--queue-bytes-max", 1 << 30, [](auto*o, auto v) { o->queue_bytes_max = v; }},
           {"--transaction-reads-max", std::uint64_t{1} << 32, [](auto*o, auto v) { o->transaction_reads_max = v; }},
           {"--transaction-copies-max", 1 << 20, [](auto*o, auto v) { o->transaction_copies_max = v; }},
           {"--parked-max", std::uint64_t{1} << 32, [](auto*o, auto v) { o->parked_max = v; }},
           {"--parked-bytes-max", std::uint64_t{1} << 31, [](auto*o, auto v) { o->parked_bytes_max = v; }},
           {"--wait-timeout-max", most_us, [&](auto*o, auto v) { o->wait_timeout_us_max = us(v); }},
           {"--sessions-max", std::uint64_t{1} << 32, [](auto*o, auto v) { o->sessions_max = v; }},
           {"--session-lease-max", most_us, [&](auto*o, auto v) { o->session_lease_us_max = us(v); }},
           {"--session-requests-max", 1 << 24, [&](auto*o, auto v) { o->session_requests_max = narrow(v); }},
           {"--session-bytes-max", 1 << 30, [](auto*o, auto v) { o->session_bytes_max = v; }},
           {"--result-bytes-max", 1 << 24, [](auto*o, auto v) { o->result_bytes_max = v; }},
           {"--read-set-keys-max", 1 << 24, [](auto*o, auto v) { o->read_set_keys_max = v; }},
           {"--uploads-bytes-max", std::uint64_t{1} << 60, [](auto*o, auto v) { o->uploads_bytes_max = v; }},
           {"--session-uploads-bytes-max", 1 << 30, [](auto*o, auto v) { o->session_uploads_bytes_max = v; }},
           {"--upload-idle-max", most_us, [&](auto*o, auto v) { o->upload_idle_us_max = us(v); }},
           {"--snapshot-bytes-max", std::uint64_t{1} << 60, [](auto*o, auto v) { o->snapshot_bytes_max = v; }},
           {"--scan-pairs-max", 1 << 20, [&](auto*o, auto v) { o->scan_pairs_max = narrow(v); }},
           {"--scan-bytes-max", 1 << 26, [](auto*o, auto v) { o->scan_bytes_max = v; }},
           {"--scans-in-flight-max", 1 << 20, [&](auto*o, auto v) { o->scans_in_flight_max = narrow(v); }},
           {"--checkpoint-log-bytes", std::uint64_t{1} << 60, [](auto*o, auto v) { o->checkpoint_log_bytes = v; }},
           {"--clock-jump-max", most_us, [&](auto*o, auto v) { o->clock_jump_us_max = us(v); }},
           {"--clock-gap-max", most_us, [&](auto*o, auto v) { o->clock_gap_us_max = us(v); }},
           {"--checkpoint-interval", most_us, [&](auto*o, auto v) { o->checkpoint_interval_us = us(v); }},
           {"--slow-transaction", most_us, [&](auto*o, auto v) { o->slow_transaction_us = us(v); }},
           {"--slow-sync", most_us, [&](auto*o, auto v) { o->slow_sync_us = us(v); }},
           {"--tombstone-retention", most_us, [&](auto*o, auto v) { o->tombstone_retention_us = us(v); }},
       }) {
    DatabaseOptions options;
    c.set(&options, c.most);
    EXPECT_TRUE(options.validate().ok()) << c.setting;
    c.set(&options, c.most + 1);
    const Status status = options.validate();
    ASSERT_NE(status.violation(), nullptr) << c.setting;
    EXPECT_EQ(status.violation()->setting, c.setting);
    const bool is_size = std::string(c.setting).find("bytes") != std::string::npos;
    const std::string most = c.most == most_us ? format_duration(kDurationUsMax)
                             : is_size         ? format_size(c.most)
                                               : std::to_string(c.most);
    EXPECT_TRUE(status.violation()->limit.ends_with(" to " + most)) << status.message();
  }
}

TEST(DatabaseOptionsTest, ANegativeDurationIsRefused) {
  DatabaseOptions options;
  options.batch_max_delay_us = -1;
  const Status status = options.validate();
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  ASSERT_NE(status.violation(), nullptr);
  EXPECT_EQ(status.violation()->actual, "-1us");
  EXPECT_EQ(status.violation()->limit, "0 to 876000h");
}

TEST(DatabaseOptionsTest, TheShadowShareIsChecked) {
  for (const double share : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    DatabaseOptions wrong;
    wrong.shadow_rate = share;
    ASSERT_FALSE(wrong.validate().ok()) << share;
    EXPECT_EQ(wrong.validate().violation()->setting, "--shadow-rate");
  }
  DatabaseOptions wrong;
  wrong.shadow_records_max = 0;
  EXPECT_EQ(wrong.validate().violation()->setting, "--shadow-records-max");
}

}  // namespace
}  // namespace kilokv::server
