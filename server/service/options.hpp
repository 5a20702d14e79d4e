// Settings of the gRPC service. A flag has the name of its field here, with `-` for `_`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/txn/validate.hpp"

namespace kilokv::server {

// The files of TLS, in PEM form.
struct TlsOptions {
  std::string cert_file;            // the server's certificate, with those of its issuers; empty: no TLS
  std::string key_file;             // the private key of the certificate
  std::string client_ca_file = {};  // clients need a certificate of one of these authorities; empty: they need none
  std::string crl_dir = {};         // revocation lists of these authorities; empty: nothing is revoked

  bool enabled() const { return !cert_file.empty(); }
  Status validate() const;
};

// How the first administrator gets in (bootstrap.hpp).
struct BootstrapOptions {
  std::string file;    // with the token; empty: none
  bool again = false;  // makes one more administrator, although there are users
};

// gRPC accepts messages of up to this many times message_bytes_max. So the service itself can refuse them, and name the
// setting. gRPC refuses longer ones with its own text, and ends the stream.
inline constexpr std::uint32_t kMessageSlack = 4;

// Bytes of the messages that are decoded where they came, at a time (decode_queue.hpp).
inline constexpr std::uint64_t kDecodedHereBytesMax = std::uint64_t{256} << 10;

struct ServiceOptions {
  std::uint64_t message_bytes_max = std::uint64_t{4} << 20;  // of one request, and of one answer
  std::uint64_t grpc_memory_max = std::uint64_t{256}
                                  << 20;  // memory of gRPC itself, for calls and for messages that it receives
  std::uint64_t calls_bytes_max = std::uint64_t{256} << 20;  // of open calls; beyond it a call is refused
  std::uint32_t streams_max = 16384;                         // open Session streams
  std::uint32_t stream_requests_max = 256;                   // in flight on one Session stream; then it is not read
  std::uint64_t stream_bytes_max = std::uint64_t{32} << 20;  // of requests in flight and unsent answers; likewise
  std::uint64_t stream_answer_bytes_max = std::uint64_t{256}
                                          << 20;  // unsent answers of one stream; beyond it the stream is cut
  std::uint64_t answers_bytes_max = std::uint64_t{512} << 20;  // unsent answers of all calls; beyond it a call fails
  DurationUs answer_us_max = 30000000;                         // to send one answer; then its call is cancelled
  std::uint32_t connections_max = 4000;
  std::uint32_t connections_per_address_max = 1000;
  std::uint32_t connection_cancels_max = 2000;                    // per second
  std::uint32_t connection_opens_max = 200;                       // of one address, per second
  DurationUs handshake_us_max = 10000000;                         // from the connection to the first settings of HTTP/2
  DurationUs connection_idle_us_max = 1800000000;                 // without a call; then the connection is closed
  std::uint64_t backup_rate_max = std::uint64_t{4} << 20;         // bytes per second that a backup reads and sends
  DurationUs backup_age_us_max = DurationUs{6} * 3600 * 1000000;  // of a snapshot that is kept for a backup
  engine::TransactionLimits limits;
  TlsOptions tls = {};
  bool login = false;  // every call needs a login

  // Long messages that wait to be decoded, or are being decoded; they are not in gRPC's memory any more. A client that
  // sends the longest ones, one after the other, has room, although a thread may forget the one before a moment later.
  std::uint64_t waiting_messages_max() const { return std::max(grpc_memory_max / 4, 4 * message_bytes_max); }
  // The same, and what messages take at most while they are parsed and decoded. A guard on a short key has 7 bytes in a
  // message, and 39 in columns. A column that grows has a quarter more room than it needs, and for a moment its old
  // room, too (engine/txn/columns_builder.cpp). The rest is for what is parsed.
  static constexpr std::uint64_t kDecodedFactor = 10;
  std::uint64_t decoding_bytes() const {
    return kDecodedFactor * (message_bytes_max + kDecodedHereBytesMax) + waiting_messages_max();
  }

  // The memory of open connections that grpc_memory_max does not count, such as the buffers of OpenSSL. Measured with
  // idle connections, in resident memory: 22 KiB for one, 81 KiB with TLS, and 154 KiB with the longest certificates of
  // a client (tests/attack/strangers_test.py).
  std::uint64_t connection_bytes(std::uint64_t connections) const {
    const std::uint64_t kib = !tls.enabled() ? 24 : tls.client_ca_file.empty() ? 88 : 184;
    return connections * (kib << 10);
  }

  // Bytes of messages that lack their end, of all connections together: at least what a message, and one that is
  // refused because it is too long, may have under way.
  std::uint64_t unread_bytes_max() const {
    return std::max(grpc_memory_max / 2, (kMessageSlack + 1) * message_bytes_max);
  }

  // gRPC lets streams send ahead what their connections can carry.
  bool windows_grow() const { return grpc_memory_max >= std::uint64_t{128} << 20; }
  // What a usual client sends at most of a message that nobody reads.
  std::uint64_t ahead_bytes() const { return windows_grow() ? message_bytes_max : std::uint64_t{256} << 10; }

  // The part of calls_bytes_max for calls without a valid login, on a server with logins: health checks, and calls that
  // are refused. A watch of the health check may stay open for ever. The least is room for about 80 calls.
  std::uint64_t stranger_calls_bytes_max() const {
    constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;
    return login ? std::max(calls_bytes_max / 16, std::min(calls_bytes_max / 4, kLeast)) : 0;
  }

  // Calls that were refused for want of a place, and whose clients do not take the error, of all connections together.
  // One takes up to 33 KiB.
  std::uint64_t refused_calls_max() const { return grpc_memory_max >> 17; }

  Status validate() const;
};

// Keys in one message of UploadReadSet. Longer read sets come in several.
inline constexpr std::uint64_t kChunkKeysMax = std::uint64_t{1} << 17;

// Calls that can be open at once on one connection. gRPC makes the client's next call wait.
inline constexpr int kCallsPerConnectionMax = 1024;

}  // namespace kilokv::server
