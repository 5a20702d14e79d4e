// Role: see security.hpp.
#include "client/lib/src/security.hpp"

#include <arpa/inet.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <netinet/in.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <utility>
#include <vector>

#include "client/lib/src/error.hpp"
#include "tls/certificate_guard.hpp"
#include "tls/files.hpp"
#include "tls/peer_probe.hpp"
#include "tls/token.hpp"
#include "tls/trust.hpp"

namespace kilokv::client {
namespace {

// Our verifier's text stands after these words in gRPC's message, and before the mark at its end.
constexpr std::string_view kReasonMark = "kilokv certificate: ", kReasonEnd = " [kilokv]";
// gRPC's own words for a handshake that failed.
constexpr std::string_view kHandshakeMark = "Tls handshake failed: ";

std::string_view text_of(const grpc::string_ref& text) { return {text.data(), text.size()}; }

// The name that the certificate of the server must have: the host of HOST:PORT, unless the options name another.
std::string expected_name(const ClientOptions& options) {
  if (!options.tls.server_name.empty()) return options.tls.server_name;
  std::string host = options.endpoint.substr(0, options.endpoint.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Checks the certificate of the server, in place of gRPC.
class ServerCheck final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  ServerCheck(std::shared_ptr<const tls::Trust> trust, std::string name)
      : trust_(std::move(trust)), name_(std::move(name)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> /*callback*/, grpc::Status* status) override {
    const std::string problem = trust_->check(text_of(request->peer_cert()), text_of(request->peer_cert_full_chain()),
                                              tls::Peer::server, name_);
    if (!problem.empty()) {
      *status =
          grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(kReasonMark) + problem + std::string(kReasonEnd));
    }
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest* /*request*/) override {}

 private:
  const std::shared_ptr<const tls::Trust> trust_;
  const std::string name_;
};

Error wrong_file(const std::string& problem) { return make_error(ErrorCode::invalid_argument, problem); }

// Reads the certificate of the client, if it has one. Returns what is wrong.
std::string read_own_pair(const TlsOptions& options, tls::Pair* pair) {
  if (options.cert_file.empty() && options.key_file.empty()) return {};
  if (options.key_file.empty())
    return "tls.cert_file (--tls-cert) needs tls.key_file (--tls-key), the key of the certificate";
  if (options.cert_file.empty())
    return "tls.key_file (--tls-key) needs tls.cert_file (--tls-cert), the certificate of the key";
  std::string problem = tls::read_pair(options.cert_file, options.key_file, pair);
  if (!problem.empty()) return "the certificate of the client (--tls-cert, --tls-key): " + problem;
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  if (now >= pair->valid_until) {
    problem = " expired on " + tls::time_text(pair->valid_until);
  } else if (now < pair->valid_from) {
    problem = " is not valid before " + tls::time_text(pair->valid_from);
  }
  return problem.empty() ? "" : "the certificate of the client in " + options.cert_file + " (--tls-cert)" + problem;
}

}  // namespace

Expected<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const ClientOptions& options) {
  if (Error error = check_token(options)) return error;
  if (!options.tls.enabled) return grpc::InsecureChannelCredentials();
  std::shared_ptr<const tls::Trust> trust;
  const std::string shown_as = options.tls.ca_file.empty()
                                   ? "the authorities that this system trusts (--tls-ca names others)"
                                   : "the authorities in " + options.tls.ca_file + " (--tls-ca)";
  std::string problem = tls::Trust::read(options.tls.ca_file, shown_as, "", &trust);
  if (!problem.empty()) return wrong_file("the authorities of the server (--tls-ca): " + problem);
  tls::Pair pair;
  problem = read_own_pair(options.tls, &pair);
  if (!problem.empty()) return wrong_file(problem);

  tls::guard_handshakes();
  using grpc::experimental::IdentityKeyCertPair;
  grpc::experimental::TlsChannelCredentialsOptions tls;
  std::vector<IdentityKeyCertPair> pairs;
  if (!pair.key.empty()) pairs.push_back(IdentityKeyCertPair{pair.key, pair.certificates});
  if (!trust->authorities().empty() || !pairs.empty()) {
    tls.set_certificate_provider(
        std::make_shared<grpc::experimental::StaticDataCertificateProvider>(trust->authorities(), pairs));
  }
  if (!trust->authorities().empty()) tls.watch_root_certs();
  if (!pairs.empty()) tls.watch_identity_key_cert_pairs();
  tls.set_verify_server_certs(false);  // ServerCheck does it, and says what is wrong
  tls.set_check_call_host(false);
  tls.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<ServerCheck>(trust, expected_name(options)));
  return grpc::experimental::TlsCredentials(tls);
}

bool explain_handshake(const ClientOptions& options, const std::string& message, Error* error) {
  if (!options.tls.enabled) return false;
  if (const std::size_t at = message.find(kReasonMark); at != std::string::npos) {
    const std::size_t begin = at + kReasonMark.size();
    error->code = ErrorCode::unauthenticated;
    error->message = "the certificate of the server at " + options.endpoint +
                     " is not accepted: " + message.substr(begin, message.find(kReasonEnd, begin) - begin);
    return true;
  }
  const std::size_t at = message.find(kHandshakeMark);
  if (at == std::string::npos) return false;
  // OpenSSL's words for an answer that is not TLS.
  if (message.find("wrong version number", at) != std::string::npos) {
    error->code = ErrorCode::unauthenticated;
    error->message = "the server at " + options.endpoint +
                     " does not use TLS, and this client does: turn TLS off here "
                     "(no --tls), or on there";
  } else {
    error->message =
        "the TLS handshake with " + options.endpoint + " failed: " + message.substr(at + kHandshakeMark.size());
  }
  return true;
}

bool explain_missing_tls(const ClientOptions& options, Error* error) {
  constexpr std::chrono::milliseconds kPatience{1000};
  if (options.tls.enabled || !tls::speaks_tls(options.endpoint, kPatience)) return false;
  error->code = ErrorCode::unauthenticated;
  error->message = "the server at " + options.endpoint + " uses TLS, and this client does not: turn TLS on (--tls)";
  return true;
}

Error check_token(const ClientOptions& options) {
  if (options.token.empty()) return {};
  if (!tls::parse_token(options.token)) {
    return make_error(ErrorCode::invalid_argument,
                      "the token is malformed: a token is kilokv_, 16 hex digits, _ and 64 hex digits");
  }
  const std::string host = options.endpoint.substr(0, options.endpoint.rfind(':'));
  in_addr address = {};  // a name that begins with 127. is no address
  const bool is_v4 = ::inet_pton(AF_INET, host.c_str(), &address) == 1;
  const bool is_here = host == "localhost" || host == "[::1]" || (is_v4 && ntohl(address.s_addr) >> 24 == 127);
  if (options.tls.enabled || is_here) return {};
  return make_error(ErrorCode::invalid_argument,
                    "no token is sent to " + options.endpoint + " without TLS: use TLS, or no token");
}

}  // namespace kilokv::client
