// Role: see reset.hpp.
#include "client/bench/reset.hpp"

#include <string>

#include "client/bench/state_check.hpp"
#include "client/command_line/interrupt.hpp"
#include "client/measure/clock.hpp"
#include "client/measure/steady_scan.hpp"
#include "engine/workloads/key_name.hpp"

namespace kilokv::bench {

client::Expected<ResetReport> delete_records(client::Session* session, const engine::Workload& workload,
                                             const RunOptions& options) {
  const client::CallOptions call{.timeout_us = static_cast<std::uint64_t>(options.give_up_after_us)};
  constexpr std::size_t kDigits = engine::KeyName::kBytes - engine::KeyName::kPrefixBytes;
  const std::int64_t start_us = steady_now_us();
  ResetReport report;
  client::Batch batch;
  for (const std::string& prefix : KeySpace(workload).prefixes()) {
    const std::string from = prefix + std::string(kDigits, '0');
    const std::string to = prefix + std::string(kDigits, '9') + '\0';
    for (bool is_empty = false; !is_empty;) {
      if (client::interrupt::received() != 0) return make_error(client::ErrorCode::cancelled, "the reset was ended");
      batch.clear();
      batch.begin();
      batch.delete_range(from, to, kResetKeys);
      batch.end();
      const auto answer = session->execute(batch, call);
      if (!answer) return answer.error();
      const client::ResultView result = answer->results.at(0);
      if (result.outcome != client::Outcome::committed) {
        return make_error(client::ErrorCode::internal,
                          std::string("--reset: a deletion ended as ") + client::to_string(result.outcome));
      }
      is_empty = !result.version.has_value();  // a transaction that wrote nothing has no version
      report.transactions += is_empty ? 0 : 1;
    }
  }
  report.elapsed_us = steady_now_us() - start_us;
  return report;
}

}  // namespace kilokv::bench
