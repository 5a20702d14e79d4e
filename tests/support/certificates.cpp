// Role: see certificates.hpp.
#include "tests/support/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include <functional>

namespace kilokv::test {
namespace {

std::string text_of(const std::function<void(BIO*)>& write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  if (value.empty()) return;
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

struct Identity::Parts {
  X509* certificate = X509_new();
  EVP_PKEY* key;
  explicit Parts(unsigned rsa_bits) : key(rsa_bits > 0 ? EVP_RSA_gen(rsa_bits) : EVP_EC_gen("P-256")) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

Identity::Identity(const CertificateOptions& options, const Identity* issuer)
    : parts_(std::make_unique<Parts>(options.rsa_bits)) {
  static long serial = 1;
  X509* const certificate = parts_->certificate;
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  ASN1_TIME_set(X509_getm_notBefore(certificate), options.from);
  ASN1_TIME_set(X509_getm_notAfter(certificate), options.until);
  X509_set_pubkey(certificate, parts_->key);
  const auto* name = reinterpret_cast<const unsigned char*>(options.name.c_str());
  if (options.is_name_unreadable) {
    X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, V_ASN1_BIT_STRING, name, -1, -1, 0);
  } else {
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, name, -1, -1, 0);
  }
  const Parts& signer = issuer == nullptr ? *parts_ : *issuer->parts_;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate));
  if (options.is_authority) add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, NID_subject_alt_name, options.alternative_names);
  add_extension(certificate, NID_ext_key_usage, options.use);
  X509_sign(certificate, signer.key, EVP_get_digestbyname(options.hash));
}

Identity::~Identity() = default;

std::string Identity::certificate() const {
  return text_of([this](BIO* bio) { PEM_write_bio_X509(bio, parts_->certificate); });
}

std::string Identity::key() const {
  return text_of(
      [this](BIO* bio) { PEM_write_bio_PrivateKey(bio, parts_->key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::string Identity::revocation_list(const std::vector<const Identity*>& revoked, std::int64_t until) const {
  X509_CRL* const list = X509_CRL_new();
  X509_CRL_set_version(list, X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list, X509_get_subject_name(parts_->certificate));
  ASN1_TIME* const begin = ASN1_TIME_set(nullptr, until - 30 * 86400);
  ASN1_TIME* const end = ASN1_TIME_set(nullptr, until);
  X509_CRL_set1_lastUpdate(list, begin);
  X509_CRL_set1_nextUpdate(list, end);
  for (const Identity* identity : revoked) {
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(identity->parts_->certificate));
    X509_REVOKED_set_revocationDate(entry, begin);
    X509_CRL_add0_revoked(list, entry);
  }
  X509_CRL_sign(list, parts_->key, EVP_sha256());
  std::string pem = text_of([list](BIO* bio) { PEM_write_bio_X509_CRL(bio, list); });
  ASN1_TIME_free(begin);
  ASN1_TIME_free(end);
  X509_CRL_free(list);
  return pem;
}

}  // namespace kilokv::test
