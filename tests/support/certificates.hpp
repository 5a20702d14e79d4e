// Makes certificates and revocation lists for unit tests, in memory. Every key is new.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace kilokv::test {

struct CertificateOptions {
  std::string name = "peer";
  std::string alternative_names = {};  // such as "DNS:localhost,IP:127.0.0.1"; empty: none
  std::string use = {};                // such as "serverAuth"; empty: any
  std::int64_t from = std::time(nullptr) - 3600, until = std::time(nullptr) + 365 * 86400;
  bool is_authority = false;
  bool is_name_unreadable = false;  // the name is no text, but a bit string
  unsigned rsa_bits = 0;            // of the key; 0: a key of the curve P-256
  const char* hash = "SHA256";      // of the signature
};

// A certificate with its key. It can sign others.
class Identity {
 public:
  // Without `issuer`, the certificate is self-signed.
  explicit Identity(const CertificateOptions& options, const Identity* issuer = nullptr);
  ~Identity();
  Identity(const Identity&) = delete;
  Identity& operator=(const Identity&) = delete;

  std::string certificate() const;  // PEM
  std::string key() const;          // PEM
  // PEM; valid until `until`, in seconds since 1970.
  std::string revocation_list(const std::vector<const Identity*>& revoked, std::int64_t until) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kilokv::test
