// Role: see server_context.hpp.
#include "tls/server_context.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstddef>
#include <utility>

#include "tls/certificate_guard.hpp"
#include "tls/openssl.hpp"

namespace kilokv::tls {
namespace {

// As gRPC offers it: forward secrecy, and ciphers that check what they encrypt.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

bool use_pair(const Pair& pair, SSL_CTX* context) {
  const std::vector<Certificate> certificates = parse_certificates(pair.certificates);
  const PrivateKey key(PEM_read_bio_PrivateKey(memory_bio(pair.key).get(), nullptr, nullptr, nullptr));
  bool good = !certificates.empty() && key != nullptr &&
              SSL_CTX_use_certificate(context, certificates.front().get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, key.get()) == 1;
  for (std::size_t i = 1; i < certificates.size() && good; ++i) {
    good = SSL_CTX_add1_chain_cert(context, certificates[i].get()) == 1;
  }
  return good;
}

std::string pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

// The bytes as UTF-8, also those after a zero byte. Empty: it cannot be read.
std::string text_of(const ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  std::string out;
  if (size >= 0) out.assign(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return out;
}

// Such as 127.0.0.1 or ::1. Empty: it is no address.
std::string address_text(const ASN1_OCTET_STRING* address) {
  const int bytes = ASN1_STRING_length(address);
  if (bytes != 4 && bytes != 16) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(bytes == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

std::string text_of(const GENERAL_NAME* name) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(name, &type);
  if (type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI) return text_of(static_cast<const ASN1_STRING*>(value));
  return type == GEN_IPADD ? address_text(static_cast<const ASN1_OCTET_STRING*>(value)) : std::string();
}

void add_names(const X509* certificate, ShownCertificate* shown) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int common = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (common >= 0) {
    shown->common_names.push_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, common))));
  }
  const std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    std::string text = text_of(sk_GENERAL_NAME_value(names.get(), i));
    if (!text.empty()) shown->alternative_names.push_back(std::move(text));
  }
}

}  // namespace

void FreeServerContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

ServerContext server_context(const Pair& pair, const std::string& authorities) {
  guard_handshakes();
  ServerContext context(SSL_CTX_new(TLS_server_method()));
  bool good = context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) == 1 &&
              SSL_CTX_set_cipher_list(context.get(), kCiphers) == 1 && use_pair(pair, context.get());
  if (good) {
    SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
    good = SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  }
  if (good && !authorities.empty()) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    for (const Certificate& authority : parse_certificates(authorities)) {
      good = good && SSL_CTX_add_client_CA(context.get(), authority.get()) == 1;
    }
  }
  ERR_clear_error();
  if (!good) context.reset();
  return context;
}

ShownCertificate shown_by(const ssl_st* connection) {
  ShownCertificate shown;
  const Certificate own(SSL_get1_peer_certificate(connection));
  if (own == nullptr) return shown;
  shown.own = pem_of(own.get());
  // On a server, this list does not begin with the client's own certificate.
  const STACK_OF(X509)* const others = SSL_get_peer_cert_chain(connection);
  for (int i = 0; i < sk_X509_num(others); ++i) shown.issuers += pem_of(sk_X509_value(others, i));
  add_names(own.get(), &shown);
  ERR_clear_error();
  return shown;
}

}  // namespace kilokv::tls
