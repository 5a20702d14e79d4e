// The channels and timers of a client, and its calls with deadlines and retries.
// Thread safety: any thread.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/lib/src/error.hpp"
#include "client/lib/src/timers.hpp"
#include "kilokv/client.hpp"
#include "kilokv/v1/kilokv.grpc.pb.h"

namespace kilokv::client {

// The delays between retries. The bound doubles from the minimum to the maximum. Each delay is drawn from the upper
// half below its bound.
class Backoff {
 public:
  explicit Backoff(const ClientOptions& options) : min_us_(options.backoff_us_min), max_us_(options.backoff_us_max) {}
  // The next delay. It is at least `retry_after_us`, which the server asked for.
  std::chrono::microseconds next(std::uint64_t retry_after_us = 0);
  void reset() { retries_ = 0; }

 private:
  std::uint64_t min_us_, max_us_;
  std::uint32_t retries_ = 0;
};

enum class Retry : std::uint8_t {
  when_refused,           // only if the server is full, and said that nothing of it ran, and when to try again
  always,                 // also if the outcome is unknown: the call may run twice
  where_someone_listens,  // the same, but not if the host has no address, if every address refuses the connection, or
                          // if what listens does not speak gRPC
};

class Connection {
 public:
  // `credentials`: of the channels (security.hpp).
  Connection(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

  const ClientOptions& options() const { return options_; }
  Timers& timers() { return timers_; }
  // The deadline of a call. If the call has no timeout, it is the default timeout plus `wait_us`, for which
  // transactions may wait on the server.
  TimePoint deadline(const CallOptions& options, std::uint64_t wait_us = 0) const;
  // One connection and its stub. The stub holds only the names of the calls.
  struct Link {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::KiloKV::Stub> stub;
  };
  // Takes the connections in turn.
  const Link& next();

  // Makes a call, with retries. `attempt` makes it once: Status(Stub*, ClientContext*). `name` is for messages. The
  // error is that of the last attempt. If an earlier attempt may have run, the error does not say `not_run`.
  template <class Attempt>
  Error call(const char* name, TimePoint deadline, Retry retry, const Attempt& attempt) {
    Backoff backoff(options_);
    for (bool may_have_run = false;;) {
      grpc::ClientContext context;
      prepare(deadline, &context);
      const Link& link = next();
      const grpc::Status status = attempt(link.stub.get(), &context);
      if (status.ok()) return {};
      Error error = describe(to_error(status, context, where(name)));
      if (status.error_code() == grpc::StatusCode::UNAVAILABLE) explain_tls(status, &error);
      if (!may_retry(status, error, retry) || !wait_before_retry(error, deadline, link.channel.get(), &backoff)) {
        return may_have_run ? without_promise(std::move(error)) : error;
      }
      may_have_run = may_have_run || !never_ran(error);
    }
  }

  // Explains errors of the transport in our own words. Does not change errors of the server.
  Error describe(Error error) const;
  std::string where(const char* name) const { return std::string(name) + " at " + options_.endpoint; }
  // Gives the call its deadline, and the login of the client.
  void prepare(TimePoint deadline, grpc::ClientContext* context) const;
  void log_in(grpc::ClientContext* context) const;

 private:
  // Says so if client and server do not agree on TLS. Without TLS, asks the server once.
  void explain_tls(const grpc::Status& status, Error* error);
  static bool may_retry(const grpc::Status& status, const Error& error, Retry retry);
  // Returns false if the deadline comes before the next try.
  static bool wait_before_retry(const Error& error, TimePoint deadline, grpc::Channel* channel, Backoff* backoff);

  ClientOptions options_;
  Timers timers_;
  std::vector<Link> links_;
  std::atomic<std::size_t> next_link_{0};
  std::atomic<bool> asked_for_tls_{false};
};

}  // namespace kilokv::client
