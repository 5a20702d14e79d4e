// Role: see tls_credentials.hpp.
#include "server/service/tls_credentials.hpp"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/check.hpp"
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

std::string_view property(const grpc_auth_context* context, const char* name) {
  grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(context, name);
  const grpc_auth_property* value = grpc_auth_property_iterator_next(&found);
  return value == nullptr ? std::string_view() : std::string_view(value->value, value->value_length);
}

// gRPC's function for "a call begins". It refuses a call whose client has no good certificate.
class CallCheck {
 public:
  CallCheck(std::shared_ptr<TlsFiles> files, std::shared_ptr<ClientCertificates> certificates,
            OnRefusedCertificate on_refused)
      : files_(std::move(files)), certificates_(std::move(certificates)), on_refused_(std::move(on_refused)) {}

  static void process(void* self, grpc_auth_context* context, const grpc_metadata* /*metadata*/, std::size_t /*count*/,
                      grpc_process_auth_metadata_done_cb done, void* user_data) {
    const std::string problem = static_cast<CallCheck*>(self)->check(context);
    const grpc_status_code code = problem.empty() ? GRPC_STATUS_OK : GRPC_STATUS_UNAUTHENTICATED;
    done(user_data, nullptr, 0, nullptr, 0, code, problem.empty() ? nullptr : problem.c_str());
  }
  static void destroy(void* self) { delete static_cast<CallCheck*>(self); }

 private:
  std::string check(const grpc_auth_context* context) {
    // On a server, the chain does not begin with the client's own certificate. A client chooses all of the chain.
    std::string problem = certificates_->check(
        files_->current()->clients, property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME),
        property(context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME), std::chrono::steady_clock::now());
    if (!problem.empty()) on_refused_(std::string(property(context, GRPC_X509_SUBJECT_PROPERTY_NAME)), problem);
    return problem;
  }

  const std::shared_ptr<TlsFiles> files_;
  const std::shared_ptr<ClientCertificates> certificates_;
  const OnRefusedCertificate on_refused_;
};

// gRPC's own class for TLS in C++ has no way to give a new pair. Its library in C has one.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  TlsCredentials(const std::shared_ptr<TlsFiles>& files, const std::shared_ptr<ClientCertificates>& certificates,
                 OnRefusedCertificate on_refused)
      : source_(files) {
    tls::guard_handshakes();
    const bool has_clients = files->current()->clients != nullptr;
    const auto request =
        has_clients ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &PairSource::fetch, &source_));
    KILOKV_CHECK(credentials_ != nullptr);
    if (!has_clients) return;
    grpc_server_credentials_set_auth_metadata_processor(
        credentials_, {.process = &CallCheck::process,
                       .destroy = &CallCheck::destroy,
                       .state = new CallCheck(files, certificates, std::move(on_refused))});
  }
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {
    KILOKV_CHECK(false);  // the call check has this place
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

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const std::shared_ptr<TlsFiles>& files,
                                                         const std::shared_ptr<ClientCertificates>& certificates,
                                                         OnRefusedCertificate on_refused) {
  return std::make_shared<TlsCredentials>(files, certificates, std::move(on_refused));
}

}  // namespace kilokv::server
