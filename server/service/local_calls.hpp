// Calls of the service from within the process, as JSON: the console makes them for a browser. They run as the calls of
// other clients do. So they have the same checks, limits and rights, and the log names the peer of the browser.
//
// A message is JSON as Protobuf maps it: names of fields as in the protocol, bytes in base64, 64-bit integers as texts.
// An answer has all fields, also those with their default.
//
// Thread safety: all members.
#pragma once

#include <grpcpp/server.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_set>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/service/logins.hpp"

namespace grpc {
class Channel;
}

namespace kilokv::server {

class LocalCalls {
 public:
  struct Call {
    std::string method;         // such as Get
    std::string json;           // the request
    std::string token = {};     // of the login; empty: none
    std::string peer = {};      // of the browser
    std::string owner = {};     // whose calls share places
    bool may_wait = false;      // for a guard: few of one owner may be open
    DurationUs timeout_us = 0;  // the call is cancelled after it
    std::stop_token cancelled = {};
  };
  struct Answer {
    StatusCode code = StatusCode::ok;
    std::string json = {};  // the response, or {"error": {...}}
  };
  using Done = std::function<void(Answer)>;

  // Open calls; those that may wait for a guard, and those of one owner among them.
  static constexpr std::size_t kOpenCallsMax = 32, kWaitsMax = 24, kWaitsOfOwnerMax = 8;
  static constexpr std::size_t kResponseBytesMax = std::size_t{48} << 10, kJsonBytesMax = std::size_t{160} << 10;

  // Requires: `server` has started, and outlives the calls. Called before the server gets its first call.
  LocalCalls(grpc::Server* server, Logins* logins);
  ~LocalCalls() { close(); }
  LocalCalls(const LocalCalls&) = delete;
  LocalCalls& operator=(const LocalCalls&) = delete;

  // Calls `done` once, from any thread, also before it returns. An answer of more than kResponseBytesMax, or of more
  // than kJsonBytesMax as JSON, is INVALID_ARGUMENT. A call beyond kOpenCallsMax, kWaitsMax or kWaitsOfOwnerMax is
  // RESOURCE_EXHAUSTED.
  void begin(const Call& call, Done done);
  // Cancels all calls, and waits for their ends. From here on, every call is UNAVAILABLE.
  void close();

 private:
  struct Flight;
  // The answer to a call that has ended well.
  Answer answer_of(Flight* flight);
  // Whether there is a place for the call; the caller holds mutex_.
  Status place_for(const Call& call) const;
  void end(const std::shared_ptr<Flight>& flight, const grpc::Status& status);

  std::string secret_;
  std::shared_ptr<grpc::Channel> channel_;
  std::mutex mutex_;  // of these:
  std::condition_variable ended_;
  std::unordered_set<std::shared_ptr<Flight>> open_;
  bool closed_ = false;
  std::mutex one_answer_;  // becomes JSON at a time, because this takes memory
};

// An error as the console shows it: {"error": {"code": ..., "reason": ..., "message": ..., "field": ..., "limit": ...,
// "actual": ..., "setting": ..., "not_run": ..., "retry_after_us": ...}}.
std::string error_json(const Status& status);

}  // namespace kilokv::server
