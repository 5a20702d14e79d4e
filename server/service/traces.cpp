#include "server/service/traces.hpp"

#include <spdlog/spdlog.h>

#include <optional>

#include "server/core/one_line.hpp"

namespace kilokv::server {

TraceParent Traces::read(std::string_view text, const Client& client) {
  if (text.empty()) return {};
  if (const std::optional<TraceParent> parsed = parse_traceparent(text)) return *parsed;
  if (const std::uint64_t times = malformed_.count()) {
    spdlog::info("kilokvd ignores malformed traceparents times={} last_client=\"{}\" last_bytes={}", times,
                 one_line(client.name), text.size());
  }
  return {};
}

TraceParent Traces::of(const grpc::ServerContextBase& context, const Client& client) {
  const auto& headers = context.client_metadata();
  const auto found = headers.find("traceparent");
  if (found == headers.end()) return {};
  return read({found->second.data(), found->second.size()}, client);
}

}  // namespace kilokv::server
