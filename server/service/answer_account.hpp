// Counts the bytes of answers that clients have not taken yet, over all calls of the service, and ends the calls whose
// client does not take its answer, or does not send what is to be answered.
//
// An answer counts from the moment at which gRPC gets it until gRPC has passed all of it on to the connection. The flow
// control of HTTP/2 lets a client delay that for ever. So each client has a share of the bytes
// (core/clients/shared_limit.hpp), and each answer has a time limit. The message of a call that needs no login has one,
// too: such calls are of clients whom the server does not know.
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
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/clients/client.hpp"

namespace kilokv::server {

// What an answer takes beside its bytes: gRPC's buffer for it (320 bytes), the count of its slice, its place in a
// queue, and the header of HTTP/2. Even an empty answer has this.
inline constexpr std::uint64_t kAnswerBytes = 448;

// A call, while gRPC sends an answer of it, or while it lacks its message.
class WatchedCall {
 public:
  virtual ~WatchedCall() = default;  // requires: not watched any more
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  // The client did not take the answer, or send the message, in time. Only cancels the call, and takes no lock that is
  // held where unwatch() is called.
  virtual void on_timeout() = 0;

 protected:
  WatchedCall() = default;

 private:
  friend class AnswerAccount;
  std::list<WatchedCall*>* watched_in_ = nullptr;
  std::list<WatchedCall*>::iterator place_;
  std::chrono::steady_clock::time_point since_;
};

class AnswerAccount {
 public:
  // The time limits of an answer and of a message.
  AnswerAccount(std::uint64_t bytes_max, DurationUs answer_us_max, DurationUs message_us_max);
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

  // The time limit of an answer of the call begins now, or begins again.
  void watch(WatchedCall* call) { begin(call, &unsent_); }
  // The time limit of its message begins now. It ends with message_came(), or when that of an answer begins.
  void await_message(WatchedCall* call) { begin(call, &awaiting_); }
  void message_came(WatchedCall* call);
  // The call has no time limit any more. After this, on_timeout() is not called: if it runs now, this waits for its
  // end.
  void unwatch(WatchedCall* call);

 private:
  using Calls = std::list<WatchedCall*>;  // in the order in which their time began

  void begin(WatchedCall* call, Calls* calls);
  static void end(WatchedCall* call);
  void end_slow_ones();
  // Moves some calls whose time is over to ending_. Returns whether there were any. The caller holds mutex_.
  bool take_slow_ones();

  SharedLimit limit_;
  const std::chrono::microseconds answer_timeout_, message_timeout_;
  std::mutex mutex_;
  std::condition_variable stop_, ended_;
  bool stopping_ = false;
  Calls unsent_, awaiting_;
  // Calls that are cancelled now, without the lock, because others need it for each answer. unwatch() waits until its
  // call is not among them. Only the thread changes them, with the lock.
  std::vector<WatchedCall*> ending_;
  std::thread thread_;
};

}  // namespace kilokv::server
