// The channels of a client, its timers, and calls with deadline and retry.
// Thread safety: any thread.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "client/lib/src/error.hpp"
#include "client/lib/src/timers.hpp"
#include "kilokv/client.hpp"
#include "kilokv/v1/kilokv.grpc.pb.h"

namespace kilokv::client {

// Delays between retries: doubled from the minimum to the maximum, each drawn from its upper half.
class Backoff {
 public:
  explicit Backoff(const ClientOptions& options) : min_us_(options.backoff_us_min), max_us_(options.backoff_us_max) {}
  // At least `retry_after_us`, which the server asked for.
  std::chrono::microseconds next(std::uint64_t retry_after_us = 0);
  void reset() { retries_ = 0; }

 private:
  std::uint64_t min_us_, max_us_;
  std::uint32_t retries_ = 0;
};

enum class Retry : std::uint8_t {
  when_refused,           // the server said that nothing of it ran, and when to come again
  always,                 // also when the fate is unknown: the call may be applied twice
  where_someone_listens,  // the same, but not where every address refuses the connection
};

class Connection {
 public:
  explicit Connection(const ClientOptions& options);

  const ClientOptions& options() const { return options_; }
  Timers& timers() { return timers_; }
  // Without a timeout of the call: the default one, after `wait_us` that the server may take by order.
  TimePoint deadline(const CallOptions& options, std::uint64_t wait_us = 0) const;
  // One connection and its stub, which holds nothing but the names of the calls.
  struct Link {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<v1::KiloKV::Stub> stub;
  };
  // Round robin over the connections.
  const Link& next();

  // `attempt` makes the call once: Status(Stub*, ClientContext*). `name` is for messages.
  template <class Attempt>
  Error call(const char* name, TimePoint deadline, Retry retry, const Attempt& attempt) {
    Backoff backoff(options_);
    for (;;) {
      grpc::ClientContext context;
      set_deadline(deadline, &context);
      const Link& link = next();
      const grpc::Status status = attempt(link.stub.get(), &context);
      if (status.ok()) return {};
      Error error = describe(to_error(status, context, where(name)));
      if (!may_retry(status, error, retry) || !wait_before_retry(error, deadline, link.channel.get(), &backoff)) {
        return error;
      }
    }
  }

  // The server's word is left as it is; failures of the transport are told in our own words.
  Error describe(Error error) const;
  std::string where(const char* name) const { return std::string(name) + " at " + options_.endpoint; }
  static void set_deadline(TimePoint deadline, grpc::ClientContext* context);

 private:
  static bool may_retry(const grpc::Status& status, const Error& error, Retry retry);
  // False: the deadline comes first.
  static bool wait_before_retry(const Error& error, TimePoint deadline, grpc::Channel* channel, Backoff* backoff);

  ClientOptions options_;
  Timers timers_;
  std::vector<Link> links_;
  std::atomic<std::size_t> next_link_{0};
};

}  // namespace kilokv::client
