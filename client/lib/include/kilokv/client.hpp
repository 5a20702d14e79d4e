// The KiloKV client. No gRPC types; nothing throws; every call has a deadline.
//
//   auto client = Client::connect({.endpoint = "127.0.0.1:7070"});
//   auto session = (*client)->open_session();
//   auto results = (*session)->execute(batch);
//
// Thread safety: Client and Session may be used from many threads. Callbacks come from the library's own threads and
// must not block.
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

struct ClientOptions {
  std::string endpoint = "127.0.0.1:7070";        // HOST:PORT
  std::uint64_t connect_timeout_us = 10'000'000;  // connect() fails after it
  // Not 0: connect() waits so long, in place of connect_timeout_us, for a server that does not listen yet or still
  // recovers. 0: it fails at once where every address refuses the connection, and takes a server that recovers.
  std::uint64_t wait_for_server_us = 0;
  std::uint64_t request_timeout_us = 30'000'000;  // default deadline of a call, retries included, WAITs on top
  std::uint64_t backoff_us_min = 10'000;          // between retries, doubled up to the maximum, with jitter
  std::uint64_t backoff_us_max = 1'000'000;
  std::uint32_t connections = 1;  // HTTP/2 connections; sessions are spread over them
};

struct SessionOptions {
  std::uint64_t lease_us = 0;                   // microseconds; 0: the server's default; renewed in the background
  std::uint32_t requests_in_flight_max = 1024;  // execute_async blocks (execute waits) beyond it
};

struct CallOptions {
  // Microseconds, retries and WAITs included. None: ClientOptions::request_timeout_us, and on top of it the longest
  // wait_timeout of the batch.
  std::optional<std::uint64_t> timeout_us = {};
  Encoding encoding = Encoding::columns;
};

// Microseconds of the clock that requests are timed with.
std::int64_t monotonic_us();

// Called as transactions finish: `indices` of the request have their results now. The last call has done = true; with
// an error, those without a result are unknown (in a session: learn them with Session::resume).
struct Progress {
  const Results& results;
  const std::vector<std::uint32_t>& indices;
  bool done = false;
  const Error& error;
  std::uint64_t request = 0;                  // its number in the session
  std::uint32_t attempts = 0;                 // how often it was sent
  std::int64_t invoke_us = 0, return_us = 0;  // monotonic_us() of the first send and of this answer
};
using ProgressCallback = std::function<void(const Progress&)>;

struct RequestResult {  // of one request: the results, and how they were reached
  Results results;
  std::uint64_t request = 0;                  // its number in the session; 0 without one
  std::uint32_t attempts = 1;                 // how often it was sent
  std::int64_t invoke_us = 0, return_us = 0;  // monotonic clock, first send and last answer
};

struct Pair {
  std::string key;
  std::variant<std::int64_t, std::string> value;
  std::uint64_t version = 0;
};
struct ScanOptions {
  std::uint32_t page_pairs = 0;  // 0: the server's page limit
  CallOptions call = {};
};
struct ScanPosition {
  std::uint64_t boundary = 0, boundary_version = 0;
  std::int64_t batch_time_us = 0;
};

struct ParkedTransaction {
  std::uint64_t id = 0;
  std::string session;  // hex; empty: none
  std::uint64_t request = 0;
  std::uint32_t index = 0, guard = 0;
  std::string guard_key;
  std::uint64_t admitted_batch = 0;
  std::int64_t deadline_us = 0;
};

// Names are those of the fields of StatusResponse, or of its settings and details, which differ from server to server.
struct ServerStatus {
  std::string version, state, strategy, state_hash;  // state: recovering, ready, draining, stopped
  // Where batches run: cpu, cuda or emulated; the model of a device; why not the one that the server was told to use.
  std::string device, device_model, device_reason;
  std::uint32_t threads = 0;
  double shadow_rate = 0;
  double uptime_seconds = 0, recovery_seconds = 0;
  std::vector<std::pair<std::string, std::string>> settings, details;  // name and text, in the server's order
  std::map<std::string, std::uint64_t> counters;
};

class Session;

class Client {
 public:
  static Expected<std::unique_ptr<Client>> connect(const ClientOptions& options);
  virtual ~Client() = default;

  // A session: its requests are applied once, however often they are sent. Closed by its destructor (best effort).
  virtual Expected<std::unique_ptr<Session>> open_session(const SessionOptions& options = {}) = 0;

  // Without a session: never sent twice after it may have run, so a lost answer is `unavailable` and its fate unknown.
  virtual Expected<Results> execute(const Batch& batch, const CallOptions& options = {}) = 0;

  virtual Expected<Results> get(const std::vector<std::string>& keys, const CallOptions& options = {}) = 0;
  // Visits all pairs of [from, to) at one boundary, page by page, until `visit` returns false. `to` empty: no upper
  // bound. The timeout is for each page.
  virtual Expected<ScanPosition> scan(std::string_view from, std::string_view to,
                                      const std::function<bool(const Pair&)>& visit,
                                      const ScanOptions& options = {}) = 0;

  virtual Expected<std::vector<ParkedTransaction>> list_parked(const CallOptions& options = {}) = 0;
  virtual Expected<std::uint64_t> cancel_parked(std::uint64_t id, const CallOptions& options = {}) = 0;
  virtual Expected<std::uint64_t> cancel(std::string_view session_hex, std::uint64_t request,
                                         std::optional<std::uint32_t> index, const CallOptions& options = {}) = 0;
  virtual Expected<ServerStatus> status(const CallOptions& options = {}) = 0;
  virtual const ClientOptions& options() const = 0;
};

// Numbers its requests, sends them over one stream, reconnects and sends again (under the same numbers) after a lost
// connection or a restart of the server, until the deadline. Acknowledges results once the callback has returned.
// Errors: failed_precondition when the session is gone (its lease ran out): open another one.
// In a callback execute() and resume() are refused, and execute_async() does not block; a Session must not be destroyed
// there. The destructor ends what is in flight as `cancelled` (the server goes on with it) and waits for callbacks.
class Session {
 public:
  virtual ~Session() = default;
  virtual std::string id() const = 0;  // hex

  // Sends and waits. One transaction that does not wait and begins with more `version ==` guards than the server takes
  // in a request has them uploaded before, in chunks; the timeout is for all of it.
  virtual Expected<RequestResult> execute(const Batch& batch, const CallOptions& options = {}) = 0;
  // Sends; returns the request number at once (it blocks only while requests_in_flight_max are in flight). The batch
  // may be reused as soon as it returns.
  // Misuse of the batch is reported through the callback, like every error.
  virtual std::uint64_t execute_async(const Batch& batch, ProgressCallback callback,
                                      const CallOptions& options = {}) = 0;
  // Asks again for a request whose deadline passed before all was answered; same content, same number and encoding.
  // The last 1,024 requests can be resumed.
  virtual Expected<RequestResult> resume(std::uint64_t request, const Batch& batch,
                                         const CallOptions& options = {}) = 0;
  virtual std::uint32_t attempts(std::uint64_t request) const = 0;  // of one in flight, or of the last finished ones

  virtual Expected<std::uint64_t> cancel(std::uint64_t request, std::optional<std::uint32_t> index = {}) = 0;
};

}  // namespace kilokv::client
