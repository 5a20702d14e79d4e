#include "tls/token.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

namespace kilokv::tls {
namespace {

constexpr std::string_view kPrefix = "kilokv_";
constexpr std::size_t kIdDigits = 16, kSecretDigits = 64;
constexpr std::size_t kTokenBytes = kPrefix.size() + kIdDigits + 1 + kSecretDigits;

template <std::size_t kBytes>
bool append_random(std::string* text) {
  std::array<unsigned char, kBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return false;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    *text += kDigits[byte >> 4];
    *text += kDigits[byte & 15];
  }
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return true;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::optional<NewToken> make_token() {
  NewToken token;
  token.text = kPrefix;
  if (!append_random<kIdDigits / 2>(&token.text)) return std::nullopt;
  token.text += '_';
  if (!append_random<kSecretDigits / 2>(&token.text)) return std::nullopt;
  std::optional<TokenParts> parts = parse_token(token.text);
  if (!parts) return std::nullopt;
  token.parts = std::move(*parts);
  return token;
}

std::optional<TokenParts> parse_token(std::string_view text) {
  if (text.size() != kTokenBytes || text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const std::string_view id = text.substr(kPrefix.size(), kIdDigits);
  const std::string_view secret = text.substr(kTokenBytes - kSecretDigits);
  if (text[kPrefix.size() + kIdDigits] != '_' || !is_hex(id) || !is_hex(secret)) return std::nullopt;
  TokenParts parts;
  parts.id = id;
  parts.secret_hash = hash_of(secret);
  return parts;
}

std::optional<std::string> make_secret() {
  std::string secret;
  return append_random<kSecretDigits / 2>(&secret) ? std::optional(std::move(secret)) : std::nullopt;
}

SecretHash hash_of(std::string_view text) {
  SecretHash hash{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  return hash;
}

bool same_hash(const SecretHash& a, const SecretHash& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace kilokv::tls
