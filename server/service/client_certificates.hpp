// Checks the certificates of clients, for each call. A result is kept for a second, so that calls in quick succession
// cost one check.
//
// The certificates of open calls and connections are checked again once a second. A certificate that was accepted is
// not looked at before it can have ended, or before there are other authorities or revocation lists.
//
// Thread safety: any thread; check_again() one thread at a time.
#pragma once

#include <grpcpp/security/auth_context.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tls/trust.hpp"

namespace kilokv::server {

// What a client has shown in TLS. Its calls and its connection hold it.
class ClientCertificate {
 public:
  explicit ClientCertificate(std::shared_ptr<const grpc::AuthContext> peer) : peer_(std::move(peer)) {}

 private:
  friend class ClientCertificates;
  const std::shared_ptr<const grpc::AuthContext> peer_;
  // Of the last check_again() that accepted it.
  std::shared_ptr<const tls::Trust> trust_;
  std::int64_t good_until_ = 0;  // in seconds since 1970
};

class ClientCertificates {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Says why a call is refused, in words for the client. Empty: the call may run. `own`: the client's certificate in
  // PEM form; empty: it has shown none. `others`: those that it has sent with it.
  std::string check(const std::shared_ptr<const tls::Trust>& trust, std::string_view own, std::string_view others,
                    Time now);
  // The same for the certificate of a call that is open, or of a connection.
  std::string check_again(const std::shared_ptr<const tls::Trust>& trust, ClientCertificate* shown, Time now);

 private:
  struct Known {
    std::string problem = {};
    std::int64_t good_until = 0;
    Time until;
  };
  Known look(const std::shared_ptr<const tls::Trust>& trust, std::string_view own, std::string_view others, Time now);

  std::mutex mutex_;                              // of these:
  std::shared_ptr<const tls::Trust> trust_;       // the results are for this one
  std::unordered_map<std::string, Known> known_;  // by all certificates
};

}  // namespace kilokv::server
