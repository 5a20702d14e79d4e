#include "client/lib/src/reach.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace kilokv::client {
namespace {

Error not_ready(const Connection& connection, v1::ServerSection::State state) {
  return make_error(ErrorCode::unavailable,
                    "the server at " + connection.options().endpoint + " is not ready: " + state_name(state));
}

Error make_first_call(Connection* connection) {
  const ClientOptions& options = connection->options();
  const bool waits = options.wait_for_server_us != 0;
  CallOptions patience;
  patience.timeout_us = waits ? options.wait_for_server_us : options.connect_timeout_us;
  const TimePoint deadline = connection->deadline(patience);
  Backoff backoff(options);
  std::optional<v1::ServerSection::State> last;
  for (;;) {
    v1::StatusResponse response;
    Error error = connection->call("Status", deadline, waits ? Retry::always : Retry::where_someone_listens,
                                   [&](auto* stub, auto* context) { return stub->Status(context, {}, &response); });
    // The server looks at rights only when it is ready.
    if (error.code == ErrorCode::permission_denied) return {};
    // The time may end during a call. An earlier answer then says more than this call.
    if (error.code == ErrorCode::deadline_exceeded && last) return not_ready(*connection, *last);
    if (error || !waits || response.server().state() == v1::ServerSection::STATE_READY) return error;
    last = response.server().state();
    const TimePoint again = Clock::now() + backoff.next();
    if (again >= deadline) return not_ready(*connection, *last);
    std::this_thread::sleep_until(again);
  }
}

}  // namespace

const char* state_name(v1::ServerSection::State state) {
  switch (state) {
    case v1::ServerSection::STATE_RECOVERING: return "recovering";
    case v1::ServerSection::STATE_READY: return "ready";
    case v1::ServerSection::STATE_DRAINING: return "draining";
    case v1::ServerSection::STATE_STOPPED: return "stopped";
    default: return "unknown";
  }
}

Error check_endpoint(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const std::string_view port = colon == std::string::npos ? "" : std::string_view(endpoint).substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool good = error == std::errc() && end == port.data() + port.size() && number >= 1 && number <= 65'535;
  if (const std::size_t scheme = endpoint.find("://"); scheme != std::string::npos) {
    return make_error(ErrorCode::invalid_argument,
                      "\"" + endpoint + "\" is not HOST:PORT: write it without " + endpoint.substr(0, scheme + 3));
  }
  if (good && colon != 0) return {};
  return make_error(ErrorCode::invalid_argument,
                    "\"" + endpoint + "\" is not HOST:PORT with a port from 1 to 65535, such as 127.0.0.1:7070");
}

Error reach_server(Connection* connection) {
  const std::string& endpoint = connection->options().endpoint;
  Error error = make_first_call(connection);
  if (error.code == ErrorCode::unimplemented) {
    error.message = "something at " + endpoint + " speaks gRPC, but is not a KiloKV server";
  }
  if (error.code == ErrorCode::deadline_exceeded) {
    error.message =
        "no answer from " + endpoint + ": the host is wrong, a firewall drops the packets, or the server hangs";
  }
  return error;
}

}  // namespace kilokv::client
