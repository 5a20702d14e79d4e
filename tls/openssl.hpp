// Owners of the objects of OpenSSL, and short texts about them. Only the sources of this room include it.
// Thread safety: pure functions.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::tls {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using RevocationList = std::unique_ptr<X509_CRL, Free<X509_CRL_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;

Bio memory_bio(std::string_view text);

// All certificates of a PEM text, in their order. Empty if there is none, or if one cannot be read.
std::vector<Certificate> parse_certificates(std::string_view pem);

// The name as text, such as "CN=Test CA,O=Example". Control characters are escaped, and a long name is cut, because a
// peer chooses it.
std::string name_of(const X509_NAME* name);

// Whether the names can be read with which gRPC names the owner: the first common name, and the subject alternative
// names.
bool names_can_be_read(const X509* certificate);
// The number of subject alternative names, of every kind.
std::size_t alternative_names(const X509* certificate);

std::int64_t unix_seconds(const ASN1_TIME* time);

}  // namespace kilokv::tls
