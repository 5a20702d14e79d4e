// Role: see certificate_guard.hpp.
#include "tls/certificate_guard.hpp"

#include <openssl/ssl.h>

#include <atomic>
#include <mutex>

#include "tls/openssl.hpp"

namespace kilokv::tls {
namespace {

std::atomic<std::size_t> bytes_max{0};

// A part of a few bytes, such as a name of one letter, takes some hundred bytes when it is parsed.
bool has_few_parts(const X509* certificate) {
  return X509_get_ext_count(certificate) <= CertificateBounds::kPartsMax &&
         X509_NAME_entry_count(X509_get_subject_name(certificate)) <= CertificateBounds::kPartsMax &&
         X509_NAME_entry_count(X509_get_issuer_name(certificate)) <= CertificateBounds::kPartsMax &&
         alternative_names(certificate) <= CertificateBounds::kNamesMax;
}

bool keeps_the_bounds(const X509_STORE_CTX* chain) {
  const STACK_OF(X509)* const shown = X509_STORE_CTX_get0_untrusted(chain);
  if (sk_X509_num(shown) > CertificateBounds::kCertificatesMax) return false;
  for (int i = 0; i < sk_X509_num(shown); ++i) {
    if (!has_few_parts(sk_X509_value(shown, i))) return false;
  }
  return true;
}

bool is_of_a_server(const X509_STORE_CTX* chain) {
  const void* const session = X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx());
  return session != nullptr && SSL_is_server(static_cast<const SSL*>(session)) == 1;
}

int refuse(X509_STORE_CTX* chain) {
  X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REJECTED);
  return 0;
}

// OpenSSL calls it where a peer has shown a certificate. OpenSSL's own check of the chain parses all extensions, and
// keeps them with the certificate. A bounded server does not need it, because it checks the certificate for each call.
int check_chain(X509_STORE_CTX* chain, void* /*unused*/) {
  const bool is_bounded = bytes_max.load(std::memory_order_relaxed) != 0 && is_of_a_server(chain);
  if (is_bounded && !keeps_the_bounds(chain)) return refuse(chain);
  const X509* const own = X509_STORE_CTX_get0_cert(chain);
  if (own != nullptr && !names_can_be_read(own)) return refuse(chain);
  if (!is_bounded) return X509_verify_cert(chain);
  X509_STORE_CTX_set_error(chain, X509_V_OK);
  return 1;
}

// OpenSSL calls it for each new context, also for those of gRPC.
void guard(void* context, void* /*value*/, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*number*/,
           void* /*pointer*/) {
  auto* const made = static_cast<SSL_CTX*>(context);
  SSL_CTX_set_cert_verify_callback(made, check_chain, nullptr);
  SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);  // a client that wants one sets it later
  if (const std::size_t most = bytes_max.load(std::memory_order_relaxed); most != 0) {
    SSL_CTX_set_max_cert_list(made, static_cast<long>(most));
  }
}

}  // namespace

void bound_certificates(const CertificateBounds& bounds) {
  bytes_max.store(bounds.bytes_max, std::memory_order_relaxed);
}

void guard_handshakes() {
  static std::once_flag once;
  std::call_once(once, [] { SSL_CTX_get_ex_new_index(0, nullptr, guard, nullptr, nullptr); });
}

}  // namespace kilokv::tls
