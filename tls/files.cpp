// Role: see files.hpp.
#include "tls/files.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <system_error>
#include <vector>

#include "tls/openssl.hpp"

namespace kilokv::tls {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;

std::string system_reason() { return std::generic_category().message(errno); }

// OpenSSL would ask for the password on the terminal.
int no_password(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

std::string parse_key(const std::string& file, const std::string& pem, PrivateKey* key) {
  bool asked = false;
  key->reset(PEM_read_bio_PrivateKey(memory_bio(pem).get(), nullptr, no_password, &asked));
  ERR_clear_error();
  if (*key != nullptr) return {};
  if (asked) {
    return file + " holds a private key that a password protects: write it without one (openssl pkey -in KEY -out NEW)";
  }
  return file + " holds no private key in PEM form";
}

// OpenSSL takes no weak keys and signatures for TLS. gRPC would then keep the old pair without a word to us.
std::string why_not_for_tls(const std::vector<Certificate>& certificates) {
  const std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context(SSL_CTX_new(TLS_method()));
  bool accepted = SSL_CTX_use_certificate(context.get(), certificates.front().get()) == 1;
  for (std::size_t i = 1; i < certificates.size() && accepted; ++i) {
    accepted = SSL_CTX_add1_chain_cert(context.get(), certificates[i].get()) == 1;
  }
  const char* reason = accepted ? nullptr : ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return accepted ? "" : reason == nullptr ? "it cannot be used" : reason;
}

}  // namespace

std::string read_file(const std::string& file, std::string* content) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(file.c_str(), "rbe"), &std::fclose);
  if (opened == nullptr) return "cannot read " + file + ": " + system_reason();
  content->clear();
  std::array<char, 65536> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), opened.get())) {
    content->append(part.data(), size);
    if (content->size() > kFileBytesMax) return file + " is too long: it has more than 16 MiB";
  }
  if (std::ferror(opened.get()) != 0) return "cannot read " + file + ": " + system_reason();
  return {};
}

std::string read_pair(const std::string& certificate_file, const std::string& key_file, Pair* pair) {
  std::string problem = read_file(certificate_file, &pair->certificates);
  if (problem.empty()) problem = read_file(key_file, &pair->key);
  if (!problem.empty()) return problem;
  const std::vector<Certificate> certificates = parse_certificates(pair->certificates);
  if (certificates.empty()) return certificate_file + " holds no certificate in PEM form, or a damaged one";
  PrivateKey key;
  problem = parse_key(key_file, pair->key, &key);
  if (!problem.empty()) return problem;
  X509* const first = certificates.front().get();
  if (X509_check_private_key(first, key.get()) != 1) {
    ERR_clear_error();
    return "the key in " + key_file + " does not match the first certificate in " + certificate_file;
  }
  problem = names_can_be_read(first) ? why_not_for_tls(certificates) : "one of its names cannot be read";
  if (!problem.empty()) return certificate_file + " holds a certificate that TLS does not take: " + problem;
  pair->subject = name_of(X509_get_subject_name(first));
  pair->valid_from = unix_seconds(X509_get0_notBefore(first));
  pair->valid_until = unix_seconds(X509_get0_notAfter(first));
  return {};
}

std::string read_authorities(const std::string& file, std::string* pem) {
  std::string problem = read_file(file, pem);
  if (problem.empty() && parse_certificates(*pem).empty()) {
    problem = file + " holds no certificate in PEM form, or a damaged one";
  }
  return problem;
}

bool others_may_read(const std::string& file) {
  struct stat about {};
  return ::stat(file.c_str(), &about) == 0 && (about.st_mode & S_IROTH) != 0;
}

std::string time_text(std::int64_t unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  std::array<char, 32> text{};
  ::gmtime_r(&time, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace kilokv::tls
