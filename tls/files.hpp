// Reads certificates and private keys from PEM files, and says what is wrong with a file. A text that says so names the
// file, and never holds a byte of a key.
//
// Each function that returns a text returns what is wrong, and an empty text if nothing is.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace kilokv::tls {

// A certificate with the certificates of its issuers, and its private key.
struct Pair {
  std::string certificates, key;                 // PEM
  std::string subject;                           // of the first certificate
  std::int64_t valid_from = 0, valid_until = 0;  // of the first certificate; in seconds since 1970
};

// Reads both files, and checks that the key is the key of the first certificate, and that both are strong enough for
// TLS. Does not look at the clock.
std::string read_pair(const std::string& certificate_file, const std::string& key_file, Pair* pair);

// Reads certificates of authorities.
std::string read_authorities(const std::string& file, std::string* pem);

// Reads a whole file of at most 16 MiB.
std::string read_file(const std::string& file, std::string* content);

// Whether users who are neither the owner nor in the group may read the file.
bool others_may_read(const std::string& file);

// Such as 2026-01-31T12:00:00Z.
std::string time_text(std::int64_t unix_seconds);

}  // namespace kilokv::tls
