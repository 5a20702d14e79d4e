// Counts the bytes of answers that clients have not taken yet, over all calls of the service, and ends the calls whose
// client does not take its answer.
//
// An answer counts from the moment at which gRPC gets it until gRPC has passed all of it on to the connection. The flow
// control of HTTP/2 lets a client delay that for ever. So each client has a share of the bytes
// (core/clients/shared_limit.hpp), and each answer has a time limit.
//
// Thread safety: all members.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/clients/client.hpp"

namespace kilokv::server {

// What an answer takes beside its bytes: gRPC's buffer for it (320 bytes), the count of its slice, its place in a
// queue, and the header of HTTP/2. Even an empty answer has this.
inline constexpr std::uint64_t kAnswerBytes = 448;

// A call, while gRPC sends an answer of it.
class UnsentAnswer {
 public:
  virtual ~UnsentAnswer() = default;  // requires: not watched any more
  UnsentAnswer(const UnsentAnswer&) = delete;
  UnsentAnswer& operator=(const UnsentAnswer&) = delete;

  // The client did not take the answer in time. May be called with any lock of the account, so it only cancels the
  // call.
  virtual void on_timeout() = 0;

 protected:
  UnsentAnswer() = default;

 private:
  friend class AnswerAccount;
  std::list<UnsentAnswer*>::iterator place_;
  std::chrono::steady_clock::time_point since_;
  bool is_watched_ = false;
};

class AnswerAccount {
 public:
  AnswerAccount(std::uint64_t bytes_max, DurationUs timeout_us);
  ~AnswerAccount();
  AnswerAccount(const AnswerAccount&) = delete;
  AnswerAccount& operator=(const AnswerAccount&) = delete;

  // Adds `bytes` for the client. RESOURCE_EXHAUSTED: all clients together, or this client, hold too many already.
  Status charge(Client* client, std::uint64_t bytes) {
    return limit_.charge(client->account(&Client::answer_bytes), bytes);
  }
  // Whether the client has room for any more.
  Status check(Client* client) {
    Status status = charge(client, 1);
    if (status.ok()) release(client, 1);
    return status;
  }
  void release(Client* client, std::uint64_t bytes) { limit_.release(client->account(&Client::answer_bytes), bytes); }
  std::uint64_t unsent_bytes() const { return limit_.held(); }

  // The time limit of `answer` begins now, or begins again.
  void watch(UnsentAnswer* answer);
  // It has none any more. After this, on_timeout() is not called.
  void unwatch(UnsentAnswer* answer);

 private:
  void end_slow_ones();

  SharedLimit limit_;
  const std::chrono::microseconds timeout_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::list<UnsentAnswer*> watched_;  // in the order in which their time began
  std::thread thread_;
};

}  // namespace kilokv::server
