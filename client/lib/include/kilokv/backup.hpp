// The stream of a backup. Needs the admin right on a server with logins.
//
//   auto stream = BackupStream::connect(options);
//   Error error = (*stream)->read({}, [](const BackupPiece& piece) { ...; return true; });
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "kilokv/client.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

struct BackupOptions {
  std::uint64_t bytes_per_second = 0;      // 0: as fast as the server allows; else 65536 or more
  std::uint64_t idle_us_max = 60'000'000;  // time without an answer after which the connection counts as lost
  // To go on with a backup: its id, and the last whole frame of it that the client has.
  std::string backup = {};  // 16 bytes; empty: a new backup
  std::uint64_t frame = 0;
  std::uint32_t crc = 0, kind = 0;
  std::string key = {};
};

// Some bytes of the backup, in order.
struct BackupPiece {
  std::string_view data;
  std::uint64_t boundary = 0;         // the last batch in the backup
  std::uint64_t estimated_bytes = 0;  // of the whole backup, about
};

class BackupStream {
 public:
  static Expected<std::unique_ptr<BackupStream>> connect(const ClientOptions& options);
  virtual ~BackupStream() = default;

  // Calls `take` with each piece, until the backup is complete or `take` returns false. Errors: those of the server;
  // aborted: the server does not keep this backup any more; unavailable: the connection is lost, or silent.
  virtual Error read(const BackupOptions& options, const std::function<bool(const BackupPiece&)>& take) = 0;
};

}  // namespace kilokv::client
