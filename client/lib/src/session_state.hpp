// A session behind its face (session.cpp): requests in flight, the stream, acknowledgements, retries, the lease.
//
// States of a request, all moves under mutex_:
//   queued   in queue_, waits for the stream               -> sent (pump)
//   sent     written to the stream                         -> queued (stream lost), delayed (refused for now), ended
//   delayed  waits for its retry timer                     -> queued
//   ended    left pending_: answered, failed, or given up at its deadline
// Invariants:
//   - A request ends once: whoever takes it out of pending_ makes its last call. While its listener runs (in_callback)
//     others only leave a note (end_error), and the thread in the listener ends it.
//   - At most one stream at a time, so results of a request are touched by one thread at a time.
//   - acknowledged_through_ covers a number once its last call has returned. A number whose fate is unknown holds it
//     back, so that resume() works, for the last kResumeWindow numbers.
// Listeners run without the lock, on threads of gRPC or of Timers.
#pragma once

#include <grpcpp/support/slice.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/session_stream.hpp"

namespace kilokv::client {

struct PendingRequest {
  enum class State : std::uint8_t { queued, sent, delayed };
  using Listener =
      std::function<void(PendingRequest&, const std::vector<std::uint32_t>& fresh, bool done, const Error&)>;

  std::uint64_t number = 0;
  grpc::Slice payload;
  Results results;
  Listener listener;
  Timers::Id deadline_timer = 0, retry_timer = 0;
  State state = State::queued;
  std::uint32_t attempts = 0;
  std::int64_t invoke_us = 0, return_us = 0;
  Backoff backoff;
  Error refusal;              // why the last attempt gave no answer; tells what was wrong when the deadline passes
  bool may_have_run = false;  // an attempt ended with its stream, or in a way that does not tell
  bool in_callback = false;
  Error end_error;  // set while in_callback: end with this afterwards

  explicit PendingRequest(const ClientOptions& options) : backoff(options) {}
};

class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  SessionState(std::shared_ptr<Connection> connection, std::string id, std::uint64_t lease_us,
               std::uint32_t requests_in_flight_max);

  // Starts to renew the lease.
  void start();
  // `number` 0: the next one. Returns the number; the listener hears exactly one done.
  std::uint64_t submit(std::uint64_t number, const Batch& batch, PendingRequest::Listener listener,
                       const CallOptions& options);
  // A request that is made by calls beside the stream. Takes a number, which end_call() gives back, once; `number` not
  // 0: that of a request which was given up. Errors: the session is closed or gone, the number is not one to resume.
  Expected<std::uint64_t> begin_call(std::uint64_t number);
  void end_call(std::uint64_t number, std::uint32_t attempts, const Error& error, bool session_gone);
  bool closed() const;
  bool made_by_calls(std::uint64_t number) const;  // one of the last requests
  std::uint64_t acknowledged_through() const;
  // Ends what is in flight as cancelled; returns when no listener runs or will run.
  void close();
  std::uint32_t attempts(std::uint64_t number) const;
  const std::string& id() const { return id_; }
  std::string where() const { return connection_->where("Session"); }
  Connection& connection() { return *connection_; }

  // True on a thread that is running a listener.
  static bool in_listener();

  // From the stream.
  void on_response(v1::SessionResponse* response);
  void on_written(bool ok);
  void on_stream_broken();
  void on_stream_end(Error error);

 private:
  using RequestPointer = std::shared_ptr<PendingRequest>;
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::uint64_t kResumeWindow = 1024;
  static constexpr std::size_t kAttemptsKept = 4096;

  // Those that take no Lock require mutex_ to be held; those that do release it while a listener runs.
  void pump();  // opens a stream if there is something to send and none, and starts the next write if none is under way
  void pump_at(TimePoint time);
  void receive(const RequestPointer& request, v1::SessionResponse* response, Lock* lock);
  void refuse(const RequestPointer& request, const Error& error);
  // Takes the request out and makes its last call, or leaves a note while its listener runs.
  void end(const RequestPointer& request, const Error& error, Lock* lock);
  void end_all(const std::vector<RequestPointer>& requests, const Error& error, Lock* lock);
  // Which of the requests on the lost stream end with it.
  std::vector<RequestPointer> culprits(const Error& error) const;
  void take_out(const RequestPointer& request);
  void last_call(const RequestPointer& request, const std::vector<std::uint32_t>& fresh, const Error& error,
                 Lock* lock);
  void acknowledge(std::uint64_t number, std::uint32_t attempts, const Error& error);
  Error check_resumable(std::uint64_t number) const;

  // On the timers' thread, without the lock.
  void on_deadline(std::uint64_t number);
  void on_retry(std::uint64_t number);
  void schedule_renewal(std::uint64_t delay_us);
  void renew_lease();
  void on_lease_renewed(const grpc::Status& status);  // on a thread of gRPC

  const std::shared_ptr<Connection> connection_;
  const Connection::Link& link_;  // of connection_
  const std::string id_;          // 16 bytes
  const std::uint64_t lease_us_;
  const std::uint32_t requests_in_flight_max_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, RequestPointer> pending_;
  std::deque<std::uint64_t> queue_;
  std::uint64_t next_number_ = 1;
  std::uint64_t acknowledged_through_ = 0;
  std::set<std::uint64_t> ended_beyond_;  // ended, above acknowledged_through_
  std::set<std::uint64_t> given_up_;      // ended with an unknown fate
  std::set<std::uint64_t> calls_;         // between begin_call() and end_call()
  struct Attempts {
    std::uint64_t number = 0;
    std::uint32_t count = 0;
    bool by_calls = false;
  };
  std::array<Attempts, kAttemptsKept> attempts_;

  struct Renewal {
    grpc::ClientContext context;
    v1::KeepSessionAliveRequest request;
    v1::KeepSessionAliveResponse response;
  };
  std::unique_ptr<Renewal> renewal_;  // of the lease, while it is in flight

  SessionStream* stream_ = nullptr;  // owns itself
  bool stream_usable_ = false;       // writes may start
  bool stream_greeted_ = false;      // its first message, which names the session, is written
  bool stream_answered_ = false;     // something came back on it
  bool writing_ = false;
  bool reconnecting_ = false;  // a timer will pump
  Backoff reconnect_backoff_;
  std::uint32_t listeners_running_ = 0;  // or about to
  bool closing_ = false;
  Error ended_;  // the session is gone

  std::vector<std::uint32_t> fresh_;  // of the one reader
};

}  // namespace kilokv::client
