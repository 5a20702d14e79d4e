// Role: see steady_scan.hpp.
#include "client/measure/steady_scan.hpp"

#include "client/measure/clock.hpp"

namespace kilokv::bench {
namespace {

bool passes(client::ErrorCode code) {
  return code == client::ErrorCode::unavailable || code == client::ErrorCode::aborted ||
         code == client::ErrorCode::resource_exhausted;
}

}  // namespace

client::Expected<client::ScanPosition> scan_steadily(client::Client* client, std::string_view from, std::string_view to,
                                                     const std::function<void()>& restart,
                                                     const std::function<void(const client::Pair&)>& visit,
                                                     std::int64_t give_up_after_us) {
  const std::int64_t give_up_us = steady_now_us() + give_up_after_us;
  client::ScanOptions options;
  options.call.timeout_us = static_cast<std::uint64_t>(give_up_after_us);
  const auto visit_all = [&](const client::Pair& pair) {
    visit(pair);
    return true;
  };
  while (true) {
    restart();
    auto position = client->scan(from, to, visit_all, options);
    if (position || !passes(position.error().code) || steady_now_us() >= give_up_us) return position;
  }
}

}  // namespace kilokv::bench
