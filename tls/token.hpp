// Tokens, with which clients log in. A token is text:
//
//   kilokv_<16 hex digits: id>_<64 hex digits: secret>
//
// The id is public. The secret is 256 random bits. The server keeps only its SHA-256. No slow hash is needed, because
// nobody can guess 256 bits.
// Thread safety: pure functions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace kilokv::tls {

using SecretHash = std::array<unsigned char, 32>;

struct TokenParts {
  std::string id;
  SecretHash secret_hash{};
};

struct NewToken {
  std::string text;
  TokenParts parts;
};

// A new token, from the kernel's random source. Empty: there is no randomness.
std::optional<NewToken> make_token();
// Empty: the text is not a token.
std::optional<TokenParts> parse_token(std::string_view text);
// 256 random bits as 64 hex digits. Empty: there is no randomness.
std::optional<std::string> make_secret();
SecretHash hash_of(std::string_view text);
// Takes the same time for all hashes.
bool same_hash(const SecretHash& a, const SecretHash& b);

}  // namespace kilokv::tls
