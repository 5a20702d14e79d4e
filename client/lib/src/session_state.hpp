// The inside of a session (session.cpp has its public part): requests in flight, the stream, acknowledgements, retries,
// and the lease.
//
// States of a request. They change under mutex_:
//   - queued: in queue_, waits for the stream or for room in the window
//       -> sent (pump), delayed (an earlier sending was refused), ended
//   - sent: written to the stream
//       -> queued (the stream was lost), delayed (refused for the moment), ended
//   - delayed: waits for its retry timer
//       -> queued, ended
//   - ended: not in pending_ any more, because it was answered, failed, or was given up at its deadline
// Invariants:
//   - A request ends once: the thread that takes it out of pending_ makes its last call. While its listener runs
//     (in_callback), other threads only set end_error, and the thread in the listener ends the request.
//   - There is at most one stream at a time. So one thread at a time uses the results of a request.
//   - queue_ has the requests in the state `queued`, and no others.
//   - acknowledged_through_ includes a number after its last call has returned. For the last kResumeWindow numbers, it
//     stays below a number whose outcome is unknown, so that resume() works. It stays below the numbers of earlier
//     holders of the session (those up to inherited_through_) until acknowledge_through(), or for kResumeWindow
//     numbers.
// Listeners run without the lock, on threads of gRPC or of Timers.
#pragma once

#include <grpcpp/support/slice.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/send_queue.hpp"
#include "client/lib/src/send_window.hpp"
#include "client/lib/src/session_stream.hpp"

namespace kilokv::client {

struct PendingRequest {
  enum class State : std::uint8_t { queued, sent, delayed };
  using Listener =
      std::function<void(PendingRequest&, const std::vector<std::uint32_t>& fresh, bool done, const Error&)>;

  std::uint64_t number = 0;
  grpc::Slice payload;
  std::string traceparent;
  Results results;
  Listener listener;
  Timers::Id deadline_timer = 0, retry_timer = 0;
  State state = State::queued;
  std::uint32_t attempts = 0;
  std::int64_t invoke_us = 0, return_us = 0;
  Backoff backoff;
  Refusals refusals;
  TimePoint again = {};       // state delayed: when to send it again
  TimePoint refused_at = {};  // state delayed, or queued after it: when the refusal came. Else: the clock's epoch
  Error refusal;              // why the last attempt had no answer; becomes the error at the deadline
  bool sent = false;          // since it was submitted or resumed
  bool may_have_run = false;  // an attempt ended without a clear refusal, or an earlier submit() sent this number
  bool may_wait = false;      // it has a transaction that may wait for others
  bool in_window = false;     // it has a place in the window of the session
  bool in_callback = false;
  Error end_error;  // set while in_callback: the request ends with it after the callback

  explicit PendingRequest(const ClientOptions& options) : backoff(options) {}
};

// Which session it is, and where its numbers begin for this client.
struct SessionIdentity {
  std::string id;  // 16 bytes
  std::uint64_t lease_us = 0;
  // For a session that this client has attached to. The numbers up to `inherited_through` are those of earlier holders.
  std::uint64_t holder = 0, acknowledged_through = 0, inherited_through = 0;
};

class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  SessionState(std::shared_ptr<Connection> connection, SessionIdentity identity, std::uint32_t requests_in_flight_max);

  // Starts to renew the lease.
  void start();
  // Sends a request. `number` 0 takes the next number. Returns the number. The listener gets exactly one call with
  // `done`.
  std::uint64_t submit(std::uint64_t number, const Batch& batch, PendingRequest::Listener listener,
                       const CallOptions& options);
  // Begins a request that does not use the stream but unary calls. Takes the next number, or, if `number` is not 0, the
  // number of a request that was given up. end_call() must be called once for it. Errors: the session is closed or
  // gone, or the number cannot be resumed.
  Expected<std::uint64_t> begin_call(std::uint64_t number);
  // `error` must say never_ran() only if no sending of the number may have run.
  void end_call(std::uint64_t number, std::uint32_t attempts, const Error& error, bool session_gone);
  bool closed() const;
  bool made_by_calls(std::uint64_t number) const;  // known only for the last requests
  std::uint64_t acknowledged_through() const;
  // Whether the number is one that earlier holders may have used.
  bool inherits(std::uint64_t number) const { return number <= inherited_through_; }
  // As Session::acknowledge_through.
  void acknowledge_through(std::uint64_t number);
  // Ends the requests in flight as cancelled. Returns when no listener runs or will run.
  void close();
  std::uint32_t attempts(std::uint64_t number) const;
  const std::string& id() const { return id_; }
  std::uint64_t holder() const { return holder_; }
  std::string where() const { return connection_->where("Session"); }
  Connection& connection() { return *connection_; }

  // Whether this thread is running a listener.
  static bool in_listener();

  // The stream calls these.
  void on_response(v1::SessionResponse* response);
  void on_written(bool ok);
  void on_stream_broken();
  void on_stream_end(Error error);

 private:
  using RequestPointer = std::shared_ptr<PendingRequest>;
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::uint64_t kResumeWindow = 1024;
  static constexpr std::size_t kAttemptsKept = 4096;

  // Functions without a Lock argument require that mutex_ is held. Functions with one release it while a listener runs.

  // Opens a stream if there is something to send and no stream. Starts the next write if none is in progress.
  void pump();
  void pump_at(TimePoint time);
  void reconnect_at(TimePoint time);
  // The number of the next request to send, or 0: there is none, or the window has no room.
  std::uint64_t next_to_send() const;
  void leave_window(PendingRequest* request);
  // Whether the request has not ended. After its end, another one with its number may be in flight: a resumed one.
  bool in_flight(const RequestPointer& request) const;
  void receive(const RequestPointer& request, v1::SessionResponse* response, Lock* lock);
  void refuse(const RequestPointer& request, const Error& error);
  Error deadline_error(const PendingRequest& request) const;
  // Measures how long the request has waited since its refusal, now that it is sent again.
  static void end_delay(PendingRequest* request);
  // Takes the request out of pending_ and makes its last call. While its listener runs, only sets end_error.
  void end(const RequestPointer& request, const Error& error, Lock* lock);
  void end_all(const std::vector<RequestPointer>& requests, const Error& error, Lock* lock);
  // The requests that end because their stream was lost with this error.
  std::vector<RequestPointer> culprits(const Error& error) const;
  void take_out(const RequestPointer& request);
  void last_call(const RequestPointer& request, const std::vector<std::uint32_t>& fresh, Error error, Lock* lock);
  std::uint32_t attempts_before(std::uint64_t number) const;  // of a request that has ended; known for the last ones
  void set_ended(const Error& error);
  // `can_go_on`: the number is kept for resume(), and not acknowledged yet.
  void acknowledge(std::uint64_t number, bool can_go_on);
  void let_go_of_inherited(std::uint64_t through);
  void acknowledge_ended();
  Error check_resumable(std::uint64_t number) const;

  // The timers' thread calls these, without the lock.
  void on_deadline(const RequestPointer& request);
  void on_retry(const RequestPointer& request);
  void schedule_renewal(std::uint64_t delay_us);
  void renew_lease();
  void on_lease_renewed(const grpc::Status& status);  // a thread of gRPC calls it

  const std::shared_ptr<Connection> connection_;
  const Connection::Link& link_;  // one of connection_
  const std::string id_;          // 16 bytes
  const std::uint64_t lease_us_, holder_, inherited_through_;
  const std::uint32_t requests_in_flight_max_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, RequestPointer> pending_;
  SendQueue queue_;
  SendWindow window_;
  Error window_refusal_;  // the refusal that closed the window last; none while the window opens quickly
  std::uint64_t next_number_;
  std::uint64_t acknowledged_through_;
  std::set<std::uint64_t> ended_beyond_;  // numbers above acknowledged_through_ that have ended
  std::set<std::uint64_t> given_up_;      // numbers that ended with an unknown outcome, or were refused for the moment
  std::set<std::uint64_t> calls_;         // numbers between begin_call() and end_call()
  std::multiset<std::uint64_t> ending_;   // numbers whose last call runs, and which cannot be resumed after it
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
  std::unique_ptr<Renewal> renewal_;  // the renewal of the lease that is in flight

  SessionStream* stream_ = nullptr;  // it owns itself
  bool stream_usable_ = false;       // whether writes may start
  bool stream_greeted_ = false;      // whether its first message, which names the session, was sent
  bool stream_answered_ = false;     // whether the server has answered on it
  bool writing_ = false;
  // Whether gRPC may keep the last message back until the next one. If the request that was to follow is given up in
  // the moment before gRPC takes the last message, the last message stays there until another one is written.
  bool promised_ = false;
  bool reconnecting_ = false;  // whether a timer will open the stream again
  Backoff reconnect_backoff_;
  std::uint32_t listeners_running_ = 0;  // those that run, or are about to run
  bool closing_ = false;
  Error ended_;  // set when the session is gone

  std::vector<std::uint32_t> fresh_;  // scratch of the one thread that reads
};

}  // namespace kilokv::client
