// Role: see certificate_guard.hpp.
#include "tls/certificate_guard.hpp"

#include <openssl/ssl.h>

#include <mutex>

#include "tls/openssl.hpp"

namespace kilokv::tls {
namespace {

// OpenSSL's own check of a chain, after ours. OpenSSL calls it where a peer has shown a certificate.
int check_chain(X509_STORE_CTX* chain, void* /*unused*/) {
  const X509* const own = X509_STORE_CTX_get0_cert(chain);
  if (own != nullptr && !names_can_be_read(own)) {
    X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REJECTED);
    return 0;
  }
  return X509_verify_cert(chain);
}

// OpenSSL calls it for each new context, also for those of gRPC.
void guard(void* context, void* /*value*/, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*number*/,
           void* /*pointer*/) {
  SSL_CTX_set_cert_verify_callback(static_cast<SSL_CTX*>(context), check_chain, nullptr);
}

}  // namespace

void guard_handshakes() {
  static std::once_flag once;
  std::call_once(once, [] { SSL_CTX_get_ex_new_index(0, nullptr, guard, nullptr, nullptr); });
}

}  // namespace kilokv::tls
