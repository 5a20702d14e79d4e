// The KiloKV client. It has no gRPC types. Nothing throws. Every call has a deadline.
//
//   auto client = Client::connect({.endpoint = "127.0.0.1:7070"});
//   auto session = (*client)->open_session();
//   auto results = (*session)->execute(batch);
//
// Thread safety: any thread may call Client and Session. The library runs callbacks on its own threads. They must not
// block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kilokv/batch.hpp"
#include "kilokv/error.hpp"
#include "kilokv/results.hpp"

namespace kilokv::client {

enum class Encoding : std::uint8_t { columns, rows };

// TLS between the client and the server. All files are in PEM form, and are read once, by connect().
struct TlsOptions {
  bool enabled = false;
  std::string ca_file;              // authorities that the server's certificate may come from; empty: the system's
  std::string cert_file, key_file;  // the client's own certificate and its key, if the server asks for one
  std::string server_name;          // the name that the server's certificate must have; empty: the host of the endpoint
};

struct ClientOptions {
  std::string endpoint = "127.0.0.1:7070";        // HOST:PORT
  std::uint64_t connect_timeout_us = 10'000'000;  // the longest time that connect() takes
  // If not 0, connect() waits up to this time, instead of connect_timeout_us, until the server listens and has
  // recovered. If 0, connect() fails at once if the host has no address, if every address refuses the connection, or if
  // what listens does not speak gRPC. It accepts a server that still recovers.
  std::uint64_t wait_for_server_us = 0;
  std::uint64_t request_timeout_us = 30'000'000;  // default timeout of a call: with its retries, without its WAITs
  std::uint64_t backoff_us_min = 10'000;          // delay before a retry: doubles up to the maximum, with jitter
  std::uint64_t backoff_us_max = 1'000'000;
  std::uint32_t connections = 1;  // HTTP/2 connections; sessions are distributed over them
  TlsOptions tls = {};
  // For a server with logins. A client without TLS sends it to this machine only (localhost, 127.0.0.0/8, [::1]).
  std::string token = {};
};

struct SessionOptions {
  std::uint64_t lease_us = 0;  // microseconds; 0: the server's default. It is renewed in the background
  // With more, execute_async() blocks and execute() waits. Requests that stay in the client because the server has too
  // much to do are among them.
  std::uint32_t requests_in_flight_max = 1024;
};

struct AttachOptions {
  std::uint32_t requests_in_flight_max = 1024;  // as in SessionOptions
  // The highest number that the program before may have used, if it is known, for example from a file. New requests get
  // higher numbers than this one, and than all that the server knows.
  std::uint64_t numbers_used = 0;
};

struct CallOptions {
  // In microseconds, with retries and WAITs. If empty: ClientOptions::request_timeout_us plus the longest wait_timeout
  // of the batch.
  std::optional<std::uint64_t> timeout_us = {};
  Encoding encoding = Encoding::columns;
  // Only for Client::execute(). If false, transactions end with their call: if its deadline passes or its connection is
  // lost, the server drops those that have not started, and cancels those that wait. If true, they go on, and nobody
  // learns their outcomes.
  bool detached = false;
  // The trace that the call belongs to, in the form of the header `traceparent` of W3C Trace Context. The server writes
  // it to its log if the transactions take long. Empty: none. A malformed one is invalid_argument, and nothing is sent.
  std::string traceparent = {};
};

// The time of the monotonic clock that measures requests, in microseconds.
std::int64_t monotonic_us();

// How often the server refused a request for the moment, and said after what delay to try again. `count` has all of
// these refusals. The rest is about those after which the request was sent again.
struct Refusals {
  std::uint32_t count = 0;
  std::uint32_t early = 0;      // after which it was sent again before the delay was over
  std::uint64_t asked_us = 0;   // sum of the delays that the server asked for
  std::uint64_t waited_us = 0;  // sum of the times from the refusal until it was sent again, as measured
};

// The argument of a callback, which is called as transactions finish. The transactions in `indices` have their results
// now. The last call has `done` set. If it has an error for which never_ran() is false, the outcomes of the
// transactions without a result are unknown. Session::resume asks for them again.
struct Progress {
  const Results& results;
  const std::vector<std::uint32_t>& indices;
  bool done = false;
  const Error& error;
  std::uint64_t request = 0;                  // its number in the session
  std::uint32_t attempts = 0;                 // how often it was sent
  std::int64_t invoke_us = 0, return_us = 0;  // monotonic_us() of the call that sent it, and of this answer
  Refusals refusals = {};
};
using ProgressCallback = std::function<void(const Progress&)>;

struct RequestResult {  // the results of one request, and how it was sent
  Results results;
  std::uint64_t request = 0;                  // its number in the session; 0: without a session
  std::uint32_t attempts = 1;                 // how often it was sent
  std::int64_t invoke_us = 0, return_us = 0;  // monotonic_us() of the call that sent it, and of the last answer
  Refusals refusals = {};  // of a request that was sent on the stream of its session, without an upload
};

struct Pair {
  std::string key;
  std::variant<std::int64_t, std::string> value;
  std::uint64_t version = 0;
  std::int64_t expires_at_us = 0;  // when the key expires, microseconds since the Unix epoch; 0: never
};
struct ScanOptions {
  std::uint32_t page_pairs = 0;  // pairs in one page, at most the server's limit; 0: the server's limit
  CallOptions call = {};
  bool reverse = false;  // from the last key to the first; unimplemented if the server does not know it
};
struct ScanPosition {
  std::uint64_t boundary = 0, boundary_version = 0;
  std::int64_t batch_time_us = 0;
};

// What the server knows of a request of a session. `decided`, `parked` and `queued` count its transactions. They are
// `transactions` together, or less: the rest does not run unless it is sent again (Session::resume).
struct KnownRequest {
  // Queued and parked transactions have not happened yet. If the server restarts, they do not run, and their request is
  // not known any more unless a part of it was decided.
  enum class State : std::uint8_t {
    acknowledged,    // somebody has said to have its results
    not_known,       // it did not run, and what was sent before the attach will never run
    queued,          // nothing is decided; it may still be refused, and then it did not run
    parked,          // nothing is decided, and at least one of its transactions waits for a guard
    partly_decided,  // some of its transactions are decided, and have results
    decided,         // all of its transactions have results
  };
  std::uint64_t number = 0;
  State state = State::not_known;
  std::uint32_t transactions = 0, decided = 0, parked = 0, queued = 0;
  Results results;
};
// Returns not_known, queued, ...
const char* to_string(KnownRequest::State state);

struct ParkedTransaction {
  std::uint64_t id = 0;
  std::string session;  // the first 8 hexadecimal digits of its id; empty: no session
  std::uint64_t request = 0;
  std::uint32_t index = 0, guard = 0;
  std::string guard_key;
  std::uint64_t admitted_batch = 0;
  std::int64_t deadline_us = 0;
  std::int64_t since_us = 0;  // microseconds since the Unix epoch: when it was parked first
  std::string client;         // the name of the connection that sent it, such as ipv4:127.0.0.1:40000
};

// Parked transactions for which all conditions hold that are given.
struct ParkedFilter {
  std::string client;               // sent by this client (ParkedTransaction::client); empty: by any
  std::string key_prefix;           // the key that it waits for begins with this; empty: any
  std::uint64_t older_than_us = 0;  // parked for at least this time; 0: for any
};

// The status of a server. Counters have the names of the fields of StatusResponse. The settings and details of servers
// can differ.
struct ServerStatus {
  std::string version, state, strategy, state_hash;  // state: recovering, ready, draining, stopped
  // Where batches run (cpu, cuda or emulated); the model of the device; and, if batches do not run on the device that
  // the server should use, the reason.
  std::string device, device_model, device_reason;
  std::string incarnation;  // hexadecimal; a restore from a backup begins another one
  bool insecure = false;    // other machines reach the server, and it lacks TLS or logins
  bool read_only = false;   // the server refuses everything that changes something
  std::uint32_t threads = 0;
  double shadow_rate = 0;
  double uptime_seconds = 0, recovery_seconds = 0;
  std::vector<std::pair<std::string, std::string>> settings, details;  // name and value, in the server's order
  std::map<std::string, std::uint64_t> counters;
  // The sections of StatusResponse, in its order, with the names of their counters.
  std::vector<std::pair<std::string, std::vector<std::string>>> sections;
  // What each part of the server holds of the memory, and the most that it may hold. A bound of 0: the part shares the
  // bound of "values".
  struct MemoryOwner {
    std::string name;
    std::uint64_t bytes = 0, bound_bytes = 0;
  };
  std::vector<MemoryOwner> memory;
};

class Session;

// A session that this client holds now.
struct AttachedSession {
  std::unique_ptr<Session> session;
  std::uint64_t acknowledged_through = 0;
  std::vector<KnownRequest> requests;  // those that the server knows, above acknowledged_through, by their numbers
  // The database was restored from a backup, and the session is from before: it has what is stored, and each new number
  // gets failed_precondition with the reason SESSION_FROZEN. What it ran after the moment to which the database was
  // restored is undone, and not known.
  bool frozen = false;
  std::string incarnation;  // of the database, as 32 hexadecimal digits; each restore begins another one

  // The state of any number. It is final if it is decided or not_known.
  KnownRequest::State state_of(std::uint64_t number) const;
};

class Client {
 public:
  static Expected<std::unique_ptr<Client>> connect(const ClientOptions& options);
  virtual ~Client() = default;

  // Opens a session. Each request of a session is applied once, however often it is sent. The destructor closes the
  // session. If that fails, the server closes it when its lease ends.
  virtual Expected<std::unique_ptr<Session>> open_session(const SessionOptions& options = {}) = 0;
  // Takes over a session from a program that has ended, or cannot be reached: from Session::id(), which that program
  // has kept in a file that only its user can read. From then on, the other program gets failed_precondition with the
  // reason SESSION_FENCED for every request. Tells what has become of the requests that were not acknowledged.
  // Errors: failed_precondition: the session has ended, or another client attaches at the same time.
  virtual Expected<AttachedSession> attach_session(std::string_view id, const AttachOptions& options = {}) = 0;

  // Executes without a session. A request that may have run is never sent again. So a lost answer is `unavailable`, and
  // the outcome is unknown.
  virtual Expected<Results> execute(const Batch& batch, const CallOptions& options = {}) = 0;

  virtual Expected<Results> get(const std::vector<std::string>& keys, const CallOptions& options = {}) = 0;
  // Visits all pairs of [from, to) at one boundary, page by page, until `visit` returns false. An empty `to` means no
  // upper bound. The timeout is for each page.
  virtual Expected<ScanPosition> scan(std::string_view from, std::string_view to,
                                      const std::function<bool(const Pair&)>& visit,
                                      const ScanOptions& options = {}) = 0;

  virtual Expected<std::vector<ParkedTransaction>> list_parked(const CallOptions& options = {}) = 0;
  virtual Expected<std::uint64_t> cancel_parked(std::uint64_t id, const CallOptions& options = {}) = 0;
  // Cancels all parked transactions that the filter lets pass. At least one condition must be given.
  virtual Expected<std::uint64_t> cancel_parked(const ParkedFilter& filter, const CallOptions& options = {}) = 0;
  // Cancels a request of a session that this client may use. `holder`: that of the session (Session::holder).
  virtual Expected<std::uint64_t> cancel(std::string_view session_hex, std::uint64_t request,
                                         std::optional<std::uint32_t> index, const CallOptions& options = {},
                                         std::uint64_t holder = 0) = 0;
  virtual Expected<ServerStatus> status(const CallOptions& options = {}) = 0;
  // The level of the server's log: trace, debug, info, warning, error, critical or off. The second function changes it
  // until the server ends, and returns the level before. Both need the admin right.
  virtual Expected<std::string> log_level(const CallOptions& options = {}) = 0;
  virtual Expected<std::string> set_log_level(const std::string& level, const CallOptions& options = {}) = 0;
  virtual const ClientOptions& options() const = 0;
};

// A session numbers its requests, and sends them over one stream. After a lost connection or a restart of the server it
// reconnects. Until their deadlines, it sends unanswered requests again under the same numbers. It acknowledges results
// after the callback has returned.
//
// Errors: failed_precondition if the session is gone because its lease ran out. Open another session then. The same
// with the reason SESSION_FENCED if another client has attached to the session: this client should stop.
//
// Inside a callback, execute() and resume() are refused, and execute_async() does not block. A callback must not
// destroy a Session. The destructor ends the requests in flight as `cancelled`, although the server still runs them.
// Then it waits for callbacks.
class Session {
 public:
  virtual ~Session() = default;
  // The whole id, as 32 hexadecimal digits. It is a secret. A client that has it can attach to the session, if it may
  // log in as the same user. A program that wants to ask after a crash keeps it in a file that only its user can read.
  virtual std::string id() const = 0;
  virtual std::uint64_t holder() const = 0;  // 0: this client has opened the session; n: the n-th attach was its own

  // Sends the batch and waits for the results. A single transaction may begin with more `version ==` guards than fit
  // into a request, if it has no WAIT guard. Then these guards are uploaded first, in chunks. The timeout covers the
  // upload, too.
  virtual Expected<RequestResult> execute(const Batch& batch, const CallOptions& options = {}) = 0;
  // Sends the batch, and returns the number of the request at once. It blocks only while requests_in_flight_max
  // requests are in flight. The batch may be reused when this returns. The callback reports every error, also misuse of
  // the batch.
  virtual std::uint64_t execute_async(const Batch& batch, ProgressCallback callback,
                                      const CallOptions& options = {}) = 0;
  // Asks again for the results of a request whose deadline passed before all of them came. Requires: the same content,
  // number and encoding. The last 1,024 requests can be resumed, but not one that was refused for good
  // (never_ran(error), and its deadline had not passed), or never sent (`attempts` is 0). Nothing of such a request
  // ran, so send it as a new one. Errors: failed_precondition, if the number cannot be resumed.
  // In a session from attach_session(), all numbers can be resumed that it left open: those that the server knows, and
  // those that are not known, which then run for the first time.
  virtual Expected<RequestResult> resume(std::uint64_t request, const Batch& batch,
                                         const CallOptions& options = {}) = 0;
  virtual std::uint32_t attempts(std::uint64_t request) const = 0;  // of a request in flight, or of a recent one

  virtual Expected<std::uint64_t> cancel(std::uint64_t request, std::optional<std::uint32_t> index = {}) = 0;

  // Only in a session from attach_session():
  // Asks again what has become of the requests that nobody has acknowledged.
  virtual Expected<std::vector<KnownRequest>> known_requests(const CallOptions& options = {}) = 0;
  // The program needs nothing more of the requests that attach_session() left open, up to this number. The server may
  // then drop their results. Until then it also keeps those of all later requests. This happens by itself when 1,024
  // further requests were sent. A request that was resumed and has not ended stays, and all after it.
  virtual void acknowledge_through(std::uint64_t request) = 0;

  // From now on the destructor does not close the session. It stays open until its lease ends, so that another client
  // can attach to it.
  virtual void keep_open() = 0;
};

}  // namespace kilokv::client
