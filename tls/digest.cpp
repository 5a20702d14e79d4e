#include "tls/digest.hpp"

#include <openssl/evp.h>

#include <memory>

#include "tls/openssl.hpp"

namespace kilokv::tls {

Sha256 sha256(std::initializer_list<std::string_view> texts) {
  Sha256 digest{};
  const std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  for (const std::string_view text : texts) EVP_DigestUpdate(context.get(), text.data(), text.size());
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  return digest;
}

}  // namespace kilokv::tls
