// Certificates, keys and revocation lists in PEM form (tls/files.cpp, tls/trust.cpp). The first byte says whether the
// input is PEM, or the DER inside of it: no mutation of base64 gets far. No text that tells what is wrong has a control
// character, because it goes to a log of lines.
#include <openssl/evp.h>

#include <algorithm>
#include <memory>

#include "tests/fuzz/fuzz.hpp"
#include "tls/files.hpp"
#include "tls/trust.hpp"

namespace kilokv::fuzz {
namespace {

std::string pem(const std::string& kind, std::string_view der) {
  std::string base64(4 * (der.size() / 3 + 1) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                                   reinterpret_cast<const unsigned char*>(der.data()), static_cast<int>(der.size()));
  base64.resize(static_cast<std::size_t>(size));
  std::string text = "-----BEGIN " + kind + "-----\n";
  for (std::size_t at = 0; at < base64.size(); at += 64) text += base64.substr(at, 64) + "\n";
  return text + "-----END " + kind + "-----\n";
}

void check_text(const std::string& text) {
  KILOKV_CHECK(std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < ' '; }));
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  static const fuzz::Folder files, lists;
  std::string_view bytes = fuzz::text_of(data, size);
  std::string text;
  switch (fuzz::take_choice(&bytes) % 4) {
    case 0: text = bytes; break;
    case 1: text = fuzz::pem("CERTIFICATE", bytes); break;
    case 2: text = fuzz::pem("X509 CRL", bytes); break;
    default: text = fuzz::pem("PRIVATE KEY", bytes);
  }
  const std::string file = files.write("pem", text);
  lists.write("pem", text);
  tls::Pair pair;
  const std::string wrong = tls::read_pair(file, file, &pair);
  fuzz::check_text(wrong);
  if (wrong.empty())
    fuzz::check_text(pair.subject + tls::time_text(pair.valid_from) + tls::time_text(pair.valid_until));
  std::string authorities;
  const bool has_authorities = tls::read_authorities(file, &authorities).empty();
  std::shared_ptr<const tls::Trust> trust;
  for (const std::string& folder : {std::string(), lists.path()}) {
    const std::string problem = tls::Trust::read(file, "the authorities", folder, &trust);
    KILOKV_CHECK(has_authorities || !problem.empty());
    fuzz::check_text(problem);
    if (!problem.empty()) continue;
    fuzz::check_text(trust->warning());
    fuzz::check_text(trust->check(text, text, tls::Peer::server, "localhost"));
    fuzz::check_text(trust->check(text, {}, tls::Peer::client));
  }
  return 0;
}
