// Role: see tls_credentials.hpp.
#include "server/service/tls_credentials.hpp"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

#include "engine/base/check.hpp"
#include "server/service/client_certificates.hpp"
#include "tls/certificate_guard.hpp"

namespace kilokv::server {
namespace {

// gRPC's function for "the next handshake". It returns a new pair once. gRPC calls it under a lock.
class PairSource {
 public:
  explicit PairSource(std::shared_ptr<TlsFiles> files) : files_(std::move(files)) {}

  static grpc_ssl_certificate_config_reload_status fetch(void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<PairSource*>(self)->fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status fetch(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsContent> content = files_->current();
    if (content == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{.private_key = content->pair.key.c_str(),
                                          .cert_chain = content->pair.certificates.c_str()};
    // gRPC needs authorities for every new pair. If it asks clients for no certificate, it does not use them.
    const std::string& authorities =
        content->clients == nullptr ? content->pair.certificates : content->clients->authorities();
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    given_ = std::move(content);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<TlsFiles> files_;
  std::shared_ptr<const TlsContent> given_;
};

// gRPC's own class for TLS in C++ has no way to give a new pair. Its library in C has one.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  explicit TlsCredentials(const std::shared_ptr<TlsFiles>& files) : source_(files) {
    tls::bound_certificates({.bytes_max = ClientCertificates::kBytesMax});
    tls::guard_handshakes();
    const auto request = files->current()->clients != nullptr ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY
                                                              : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &PairSource::fetch, &source_));
    KILOKV_CHECK(credentials_ != nullptr);
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {
    KILOKV_CHECK(false);  // nobody sets one
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    // For such a port gRPC returns 0, also if it does not take the pair. It then starts without the port. So TlsFiles
    // must refuse all pairs that gRPC does not take.
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  PairSource source_;
  grpc_server_credentials* credentials_ = nullptr;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const std::shared_ptr<TlsFiles>& files) {
  return std::make_shared<TlsCredentials>(files);
}

}  // namespace kilokv::server
