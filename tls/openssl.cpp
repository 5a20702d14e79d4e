// Role: see openssl.hpp.
#include "tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>

namespace kilokv::tls {

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

std::int64_t unix_seconds(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<std::int64_t>(::timegm(&parts)) : 0;
}

}  // namespace kilokv::tls
