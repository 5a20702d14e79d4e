// Checks the certificates of clients, for each call. A result is kept for a second, so that calls in quick succession
// cost one check. It is kept by the SHA-256 of the certificates, because a stranger can send as many as it likes.
//
// A client that resumes a TLS session shows its own certificate, but not those of its issuers, because the server's
// ticket does not hold them. So those with which it was accepted are kept. They prove nothing, and only help to find
// the issuers.
//
// The certificates of open calls and connections are checked again once a second. A certificate that was accepted is
// not looked at before it can have ended, or before there are other authorities or revocation lists.
//
// Thread safety: any thread; check_again() one thread at a time.
#pragma once

#include <grpcpp/security/auth_context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "tls/digest.hpp"
#include "tls/trust.hpp"

namespace kilokv::server {

// What a client has shown in TLS. Its calls and its connection hold it.
class ClientCertificate {
 public:
  explicit ClientCertificate(std::shared_ptr<const grpc::AuthContext> peer) : peer_(std::move(peer)) {}

 private:
  friend class ClientCertificates;
  const std::shared_ptr<const grpc::AuthContext> peer_;
  // What the last check_again() that accepted it looked at.
  std::shared_ptr<const tls::Trust> trust_;
  std::int64_t good_until_ = 0;  // in seconds since 1970
};

class ClientCertificates {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The most bytes of all certificates of a client, in DER form. The handshake ends where they are more
  // (tls/certificate_guard.hpp).
  static constexpr std::size_t kBytesMax = 8192;

  // Says why a call is refused, in words for the client. Empty: the call may run. `own`: the client's certificate in
  // PEM form; empty: it has shown none. `others`: those that it has sent with it.
  std::string check(const std::shared_ptr<const tls::Trust>& trust, std::string_view own, std::string_view others,
                    Time now);
  // The same for what a client has shown in TLS.
  std::string check(const std::shared_ptr<const tls::Trust>& trust, const grpc::AuthContext& peer, Time now);
  // The same for the certificate of a call that is open, or of a connection.
  std::string check_again(const std::shared_ptr<const tls::Trust>& trust, ClientCertificate* shown, Time now);

 private:
  struct Known {
    std::string problem = {};
    std::int64_t good_until = 0;
    Time until;
  };
  Known look(const std::shared_ptr<const tls::Trust>& trust, std::string_view own, std::string_view others, Time now);

  // Those that the client sent with its certificate when it was accepted last.
  std::string sent_before(std::string_view own);
  void remember(std::string_view own, std::string_view others);  // requires: mutex_ is held

  std::mutex mutex_;                         // of these:
  std::shared_ptr<const tls::Trust> trust_;  // the results are for this one
  std::map<tls::Sha256, Known> known_;       // by all certificates
  std::map<tls::Sha256, std::string> sent_;  // certificates of issuers, by the client's own
  std::size_t sent_bytes_ = 0;               // of sent_
};

}  // namespace kilokv::server
