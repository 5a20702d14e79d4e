// Role: see openssl.hpp.
#include "tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

namespace kilokv::tls {
namespace {

bool can_be_read(const ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  const bool good = ASN1_STRING_to_UTF8(&utf8, text) >= 0;
  OPENSSL_free(utf8);
  return good;
}

bool can_be_read(const GENERAL_NAME* name) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(name, &type);
  if (type == GEN_IPADD) {
    const int bytes = ASN1_STRING_length(static_cast<const ASN1_OCTET_STRING*>(value));
    return bytes == 4 || bytes == 16;
  }
  const bool is_text = type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI;
  return !is_text || can_be_read(static_cast<const ASN1_STRING*>(value));
}

using AlternativeNames = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;
AlternativeNames alternative_names_of(const X509* certificate) {
  return AlternativeNames(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
}

}  // namespace

Bio memory_bio(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::vector<Certificate> parse_certificates(std::string_view pem) {
  std::vector<Certificate> certificates;
  const Bio bio = memory_bio(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  // The end of the text is PEM_R_NO_START_LINE. Any other error is in a certificate.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) certificates.clear();
  return certificates;
}

std::string name_of(const X509_NAME* name) {
  constexpr std::size_t kNameBytesMax = 200;
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  const std::string all(text, static_cast<std::size_t>(size));
  return all.size() <= kNameBytesMax ? all : all.substr(0, kNameBytesMax) + "...";
}

bool names_can_be_read(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int common = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (common >= 0 && !can_be_read(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, common)))) return false;
  const AlternativeNames others = alternative_names_of(certificate);
  for (int i = 0; i < sk_GENERAL_NAME_num(others.get()); ++i) {
    if (!can_be_read(sk_GENERAL_NAME_value(others.get(), i))) return false;
  }
  return true;
}

std::size_t alternative_names(const X509* certificate) {
  const AlternativeNames names = alternative_names_of(certificate);
  return static_cast<std::size_t>(std::max(sk_GENERAL_NAME_num(names.get()), 0));
}

std::int64_t unix_seconds(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<std::int64_t>(::timegm(&parts)) : 0;
}

}  // namespace kilokv::tls
