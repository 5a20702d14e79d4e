// Settings of the pages over HTTP, and what they may take. A flag has the name of its field here, with `-` for `_`.
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/types.hpp"

namespace kilokv::server {

struct HttpOptions {
  static constexpr char kOff[] = "off";
  std::string http_listen = "127.0.0.1:7071";  // kOff: no pages
  std::uint32_t http_connections_max = 64;
  bool console = true;        // the page for operators, below /console/
  bool console_kill = false;  // it has a button that kills the server

  // Unsent pages, of all connections together, and as much for the page that is being made.
  static constexpr std::uint64_t kPageBytesMax = std::uint64_t{256} << 10;
  // Each connection may hold the body of a request.
  static constexpr std::uint64_t kBodyBytesMax = std::uint64_t{8} << 10;
  // One body that is decoded (a byte of JSON becomes up to 32, as an empty message for `{},`), and one
  // answer of 48 KiB that becomes JSON.
  static constexpr std::uint64_t kConsoleBytesMax = std::uint64_t{768} << 10;

  bool enabled() const { return http_listen != kOff; }
  // The memory of so many connections, with their buffers and those of OpenSSL. Measured with connections that wait, in
  // resident memory (docs/limits.md).
  static std::uint64_t connection_bytes(std::uint64_t connections, bool has_tls, bool has_certificates) {
    const std::uint64_t kib = !has_tls ? 24 : has_certificates ? 192 : 112;
    return connections * (kib << 10);
  }
  std::uint64_t memory_bound(bool has_tls, bool has_certificates) const {
    if (!enabled()) return 0;
    return connection_bytes(http_connections_max, has_tls, has_certificates) + 2 * kPageBytesMax +
           (console ? kConsoleBytesMax + http_connections_max * kBodyBytesMax : 0);
  }
};

// The bounds of a connection. What is as for gRPC has the same setting.
struct HttpLimits {
  std::uint32_t connections_max = 64;
  std::uint32_t connections_per_address_max = 32;  // --connections-per-address-max, and at most half of all
  std::uint32_t opens_max = 200;                   // --connection-opens-max: new connections, and requests, per second
  DurationUs head_us_max = 10000000;               // --handshake-timeout: from the connection to the end of the headers
  DurationUs idle_us_max = 1800000000;             // --connection-idle-max: between two requests
  DurationUs answer_us_max = 30000000;             // --answer-timeout: to take an answer
  // A client that has not taken its answer after this time loses its place if another one needs it.
  DurationUs patience_us = 1000000;
  std::uint64_t page_bytes_max = HttpOptions::kPageBytesMax;
  static constexpr std::uint32_t kHeaderBytesMax = 8192;
};

}  // namespace kilokv::server
