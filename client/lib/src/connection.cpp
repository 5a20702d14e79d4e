// Channels, deadlines and retries (connection.hpp).
#include "client/lib/src/connection.hpp"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include "client/lib/src/security.hpp"

namespace kilokv::client {
namespace {

// The client sends a ping only while a call is open and the connection is silent. Servers with the defaults of gRPC
// tolerate this: they allow two pings without data in between, and the renewals of a session's lease are data.
grpc::ChannelArguments channel_arguments(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);  // also the shortest time of one attempt
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // each channel has its own connection
  arguments.SetMaxReceiveMessageSize(-1);                   // the server limits its answers
  arguments.SetMaxSendMessageSize(-1);  // the server refuses what is too large, and names the setting
  // Without TLS, a token goes to this machine only, and never through a proxy that the environment names.
  if (!options.tls.enabled) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (options.tls.enabled && !options.tls.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls.server_name);
  }
  return arguments;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return contains(text, part); });
}

// Whether nothing listens at the endpoint. Only gRPC's message text tells what went wrong below the service. gRPC fails
// a call with this text only after it has tried every address of the name.
bool nothing_listens(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE && contains(status.error_message(), "Connection refused");
}

// Words of explain(): no KiloKV server is at the endpoint, so to try again soon does not help.
constexpr char kUnresolved[] = "cannot be resolved", kNoGrpc[] = "does not speak gRPC";

// Explains a message of the transport in our own words. Empty if the message comes from the server.
std::string explain(const std::string& message, const std::string& endpoint) {
  if (contains(message, "Connection refused")) return "nothing listens at " + endpoint + ": the connection is refused";
  if (contains_any(message, {"DNS resolution", "name resolution"})) {
    return "the host of " + endpoint + ' ' + kUnresolved + ": check its name";
  }
  if (contains_any(message, {"http1", "HTTP/2", "Trying to connect", "settings frame", "http2 header"})) {
    return "something at " + endpoint + " answers, but " + kNoGrpc + ": is the port wrong, or does it use TLS?";
  }
  if (contains_any(message,
                   {"Socket closed", "Connection reset", "GOAWAY", "Broken pipe", "RST_STREAM", "keepalive"})) {
    return "the connection to " + endpoint +
           " was closed: the server ended, restarts, or refused the connection, and then its log says why";
  }
  constexpr std::string_view kSystemReason = "Failed to connect to remote host: ";
  const std::size_t at = message.find(kSystemReason);
  if (at != std::string::npos)
    return "cannot connect to " + endpoint + ": " + message.substr(at + kSystemReason.size());
  if (contains(message, "failed to connect to all addresses")) return "cannot connect to " + endpoint;
  return {};
}

}  // namespace

std::chrono::microseconds Backoff::next(std::uint64_t retry_after_us) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const std::uint64_t full = std::min(max_us_, min_us_ << std::min(retries_, std::uint32_t{20}));
  ++retries_;
  const std::uint64_t least = std::max(full / 2, retry_after_us);
  const std::uint64_t spread = std::max(full, retry_after_us) / 2;
  return std::chrono::microseconds(least + std::uniform_int_distribution<std::uint64_t>(0, spread)(random));
}

Connection::Connection(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : options_(options) {
  for (std::uint32_t i = 0; i < std::max(options.connections, 1u); ++i) {
    auto channel = grpc::CreateCustomChannel(options.endpoint, credentials, channel_arguments(options));
    auto stub = v1::KiloKV::NewStub(channel);
    links_.push_back({std::move(channel), std::move(stub)});
  }
}

TimePoint Connection::deadline(const CallOptions& options, std::uint64_t wait_us) const {
  // Longer timeouts become a year, because a larger sum could overflow the clocks.
  constexpr std::uint64_t kLongestUs = std::uint64_t{365} * 86400 * 1'000'000;
  const std::uint64_t timeout_us =
      std::min(options.timeout_us ? *options.timeout_us : std::min(options_.request_timeout_us, kLongestUs) + wait_us,
               kLongestUs);
  return Clock::now() + std::chrono::microseconds(timeout_us);
}

const Connection::Link& Connection::next() {
  return links_[next_link_.fetch_add(1, std::memory_order_relaxed) % links_.size()];
}

void Connection::log_in(grpc::ClientContext* context) const {
  if (!options_.token.empty()) context->AddMetadata("authorization", "Bearer " + options_.token);
}

void Connection::prepare(TimePoint deadline, grpc::ClientContext* context) const {
  log_in(context);
  const auto left = std::chrono::duration_cast<std::chrono::system_clock::duration>(deadline - Clock::now());
  context->set_deadline(std::chrono::system_clock::now() + left);
}

Error Connection::describe(Error error) const {
  const bool of_transport = error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded ||
                            contains_any(error.message, {"RST_STREAM", "http2 header"});
  if (!of_transport || explain_handshake(options_, error.message, &error)) return error;
  // When the memory of the server's gRPC is full, it resets streams of any client. The service says nothing then, so
  // this is a lost connection.
  if (error.code == ErrorCode::resource_exhausted && contains(error.message, "RST_STREAM")) {
    error.code = ErrorCode::unavailable;
  }
  if (std::string explanation = explain(error.message, options_.endpoint); !explanation.empty()) {
    error.message = std::move(explanation);
  }
  return error;
}

void Connection::explain_tls(const grpc::Status& status, Error* error) {
  if (options_.tls.enabled || nothing_listens(status) || asked_for_tls_.exchange(true)) return;
  explain_missing_tls(options_, error);
}

bool Connection::may_retry(const grpc::Status& status, const Error& error, Retry retry) {
  if (error.code == ErrorCode::resource_exhausted) {
    return error.retry_after_us != 0 && (error.not_run || retry != Retry::when_refused);
  }
  if (error.code != ErrorCode::unavailable || retry == Retry::when_refused) return false;
  return retry == Retry::always || !(nothing_listens(status) || contains_any(error.message, {kUnresolved, kNoGrpc}));
}

bool Connection::wait_before_retry(const Error& error, TimePoint deadline, grpc::Channel* channel, Backoff* backoff) {
  const TimePoint again = Clock::now() + backoff->next(error.retry_after_us);
  if (again >= deadline) return false;
  // After a failed try, a channel connects again only if the program waits for it. Calls do not wait: they fail at
  // once.
  if (error.code == ErrorCode::unavailable) {
    channel->WaitForConnected(std::chrono::system_clock::now() + (again - Clock::now()));
  }
  std::this_thread::sleep_until(again);
  return true;
}

}  // namespace kilokv::client
