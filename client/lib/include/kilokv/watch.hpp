// Watches the durable writes of a range, in the one serial order, each once. Needs the right to read the range on a
// server with logins.
//
//   auto watch = Watch::connect(options);
//   Error error = (*watch)->read({.from = "stock:", .to = "stock;"}, [](const WatchedPart& part) { ...; return true;
//   });
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kilokv/client.hpp"
#include "kilokv/error.hpp"
#include "kilokv/results.hpp"

namespace kilokv::client {

// A place between two writes: after all writes of this version and of earlier ones. If `writes` is not 0, the place is
// after that number of writes of this version.
struct WatchPosition {
  std::uint64_t version = 0;
  std::uint32_t writes = 0;
};

struct WatchOptions {
  std::string from = {}, to = {};  // [from, to); `to` empty: no upper bound
  // Only what comes after it, such as the boundary_version of a scan. Nothing: what becomes durable from now on.
  std::optional<WatchPosition> after = {};
  // The incarnation of the database that gave `after`: 32 hexadecimal digits. If the database was restored since, the
  // watch is aborted. Empty: not checked.
  std::string incarnation = {};
  // For so long, the watch tries to reach the server again after the connection is lost. It then goes on where it was.
  std::uint64_t reconnect_us_max = 60'000'000;
  std::uint64_t idle_us_max = 10'000'000;  // time without an answer after which the connection counts as lost
};

// Its views are valid during the call.
struct WatchedWrite {
  std::string_view key;
  ValueView value;  // nothing: the key was deleted
  std::uint64_t version = 0;
  std::int64_t batch_time_us = 0;  // microseconds since the Unix epoch
  std::int64_t expires_at_us = 0;  // when the key expires, microseconds since the Unix epoch; 0: never
  bool expired = false;            // the server deleted the key because it had expired
  std::uint64_t batch = 0;
  std::uint32_t rank = 0;
};

struct WatchedPart {
  std::vector<WatchedWrite> writes;  // may be empty
  WatchPosition position;            // after these writes; it comes at least every second
  bool unfinished = false;           // the transaction of the last write goes on in the next part
  std::string_view incarnation;      // of the database: 32 hexadecimal digits
};

class Watch {
 public:
  static Expected<std::unique_ptr<Watch>> connect(const ClientOptions& options);
  virtual ~Watch() = default;

  // Calls `take` with each part, until `take` returns false. Errors: those of the server; aborted: the log from the
  // position on is not kept any more, or the database was restored since; unavailable: the server could not be reached
  // again in time.
  virtual Error read(const WatchOptions& options, const std::function<bool(const WatchedPart&)>& take) = 0;
};

}  // namespace kilokv::client
