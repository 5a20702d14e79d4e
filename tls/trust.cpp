// Role: see trust.hpp.
#include "tls/trust.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "tls/files.hpp"
#include "tls/openssl.hpp"

namespace kilokv::tls {
namespace {

// OpenSSL's level: 112 bits, as for TLS itself. Without it, OpenSSL accepts keys and hashes of any strength here.
constexpr int kStrength = 2;

std::string subject_of(const X509* certificate) { return name_of(X509_get_subject_name(certificate)); }
std::string issuer_of(const X509* certificate) { return name_of(X509_get_issuer_name(certificate)); }

// All revocation lists of a PEM text. Empty if there is none, or if one cannot be read.
std::vector<RevocationList> parse_lists(std::string_view pem) {
  std::vector<RevocationList> lists;
  const Bio bio = memory_bio(pem);
  while (X509_CRL* list = PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr)) lists.emplace_back(list);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) lists.clear();
  return lists;
}

bool is_address(const std::string& name) {
  ASN1_OCTET_STRING* const address = a2i_IPADDRESS(name.c_str());
  ASN1_OCTET_STRING_free(address);
  ERR_clear_error();
  return address != nullptr;
}

bool set_name(const std::string& name, X509_VERIFY_PARAM* parameters) {
  if (is_address(name)) return X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(parameters, name.data(), name.size()) == 1;
}

// The host names and addresses that a certificate is for, such as "db.example, 127.0.0.1".
std::string names_in(X509* certificate) {
  constexpr int kNamesMax = 5;
  const std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr) return "only the name \"" + subject_of(certificate) + "\"";
  const Bio bio(BIO_new(BIO_s_mem()));
  const int count = sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < std::min(count, kNamesMax); ++i) {
    if (i > 0) BIO_puts(bio.get(), ", ");
    GENERAL_NAME_print(bio.get(), sk_GENERAL_NAME_value(names.get(), i));
  }
  if (count > kNamesMax) BIO_puts(bio.get(), ", ...");
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  std::string all(text, static_cast<std::size_t>(size));
  std::replace_if(
      all.begin(), all.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return all.substr(0, 200);
}

}  // namespace

// The store has the authorities and the lists. Its flags are set before it is shared.
struct Trust::Lists {
  Store store{X509_STORE_new()};
  bool check_revocation = false;
  std::vector<std::int64_t> ends;  // of the lists
};

Trust::Trust() : lists_(std::make_unique<Lists>()) {}
Trust::~Trust() = default;

std::string Trust::read(const std::string& authorities_file, const std::string& shown_as,
                        const std::string& revocation_dir, std::shared_ptr<const Trust>* trust) {
  const std::shared_ptr<Trust> made(new Trust());
  made->shown_as_ = shown_as;
  X509_STORE* const store = made->lists_->store.get();
  if (authorities_file.empty()) {
    if (X509_STORE_set_default_paths(store) != 1) return "the system's certificates of authorities cannot be read";
  } else {
    std::string problem = read_authorities(authorities_file, &made->authorities_);
    if (!problem.empty()) return problem;
    for (const Certificate& authority : parse_certificates(made->authorities_)) {
      X509_STORE_add_cert(store, authority.get());
    }
  }
  if (!revocation_dir.empty()) {
    std::string problem = made->read_lists(revocation_dir);
    if (!problem.empty()) return problem;
  }
  *trust = made;
  return {};
}

std::string Trust::read_lists(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator files(folder, error);
  if (error) return "cannot read the folder " + folder + ": " + error.message();
  std::size_t found = 0;
  for (; files != std::filesystem::directory_iterator(); files.increment(error)) {
    const std::string file = files->path().string();
    if (files->path().filename().string().starts_with('.') || !files->is_regular_file(error)) continue;
    std::string pem;
    std::string problem = read_file(file, &pem);
    if (!problem.empty()) return problem;
    const std::vector<RevocationList> lists = parse_lists(pem);
    if (lists.empty()) return file + " holds no revocation list in PEM form, or a damaged one";
    for (const RevocationList& list : lists) {
      const ASN1_TIME* next = X509_CRL_get0_nextUpdate(list.get());
      if (next != nullptr && X509_cmp_current_time(next) < 0) {
        warning_ = "the revocation list in " + file + " was valid until " + time_text(unix_seconds(next)) +
                   ": certificates of this authority are refused";
      }
      if (next != nullptr) lists_->ends.push_back(unix_seconds(next));
      X509_STORE_add_crl(lists_->store.get(), list.get());
    }
    found += lists.size();
  }
  if (error) return "cannot read the folder " + folder + ": " + error.message();
  if (found == 0) return "the folder " + folder + " holds no revocation list";
  lists_->check_revocation = true;
  return {};
}

namespace {

// Such as "RSA with 1024 bits".
std::string key_text(X509* certificate) {
  const EVP_PKEY* const key = X509_get0_pubkey(certificate);
  const char* const type = key == nullptr ? nullptr : EVP_PKEY_get0_type_name(key);
  if (type == nullptr) return "of an unknown kind";
  return std::string(type) + " with " + std::to_string(EVP_PKEY_get_bits(key)) + " bits";
}

// What is wrong, from the place in the chain at which OpenSSL stopped.
std::string reason_of(X509_STORE_CTX* context, const std::string& authorities, const std::string& name) {
  X509* const at = X509_STORE_CTX_get_current_cert(context);
  const int code = X509_STORE_CTX_get_error(context);
  if (at == nullptr) return X509_verify_cert_error_string(code);
  const bool is_own = X509_STORE_CTX_get_error_depth(context) == 0;
  const std::string it = is_own ? "it" : "the certificate of its issuer \"" + subject_of(at) + "\"";
  switch (code) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return "it is self-signed, and not one of " + authorities;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "its issuer \"" + issuer_of(at) + "\" is not one of " + authorities;
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "its issuer has the name \"" + issuer_of(at) + "\", but not the key of the one in " + authorities;
    case X509_V_ERR_CERT_HAS_EXPIRED: return it + " expired on " + time_text(unix_seconds(X509_get0_notAfter(at)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return it + " is not valid before " + time_text(unix_seconds(X509_get0_notBefore(at)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "it is for " + names_in(at) + ", and not for " + name;
    case X509_V_ERR_CERT_REVOKED: return it + " was revoked by \"" + issuer_of(at) + "\"";
    case X509_V_ERR_UNABLE_TO_GET_CRL: return "there is no revocation list of its issuer \"" + issuer_of(at) + "\"";
    case X509_V_ERR_CRL_HAS_EXPIRED: return "the revocation list of its issuer \"" + issuer_of(at) + "\" is too old";
    case X509_V_ERR_INVALID_PURPOSE: return it + " is not made for this use (extendedKeyUsage, keyUsage)";
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
      return it + " has a key that is too weak, " + key_text(at) + ": RSA needs 2048 bits, and elliptic curves 224";
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return it + " has a signature that is too weak, " + OBJ_nid2ln(X509_get_signature_nid(at)) +
             ": it needs SHA-256, or another hash as strong";
    default: return it + " is not accepted: " + X509_verify_cert_error_string(code);
  }
}

// Whichever ends first of the certificates of an accepted chain, and of the revocation lists that have not ended yet.
std::int64_t first_end(X509_STORE_CTX* context, const std::vector<std::int64_t>& ends_of_lists) {
  std::int64_t first = INT64_MAX;
  const STACK_OF(X509)* const chain = X509_STORE_CTX_get0_chain(context);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    first = std::min(first, unix_seconds(X509_get0_notAfter(sk_X509_value(chain, i))));
  }
  const std::int64_t now = std::time(nullptr);
  for (const std::int64_t end : ends_of_lists) {
    if (end > now) first = std::min(first, end);
  }
  return first;
}

}  // namespace

std::string Trust::check(std::string_view own, std::string_view sent, Peer peer, const std::string& name,
                         std::int64_t* good_until) const {
  const std::vector<Certificate> leaf = parse_certificates(own), issuers = parse_certificates(sent);
  if (leaf.empty()) return "it cannot be read";
  const std::unique_ptr<STACK_OF(X509), Free<[](STACK_OF(X509) * s) { sk_X509_free(s); }>> others(sk_X509_new_null());
  for (const Certificate& issuer : issuers) sk_X509_push(others.get(), issuer.get());
  const StoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), lists_->store.get(), leaf.front().get(), others.get()) != 1) {
    return "it cannot be checked";
  }
  X509_STORE_CTX_set_default(context.get(), peer == Peer::server ? "ssl_server" : "ssl_client");
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_auth_level(parameters, kStrength);
  if (lists_->check_revocation) {
    X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  }
  if (peer == Peer::server && !set_name(name, parameters)) return "the name " + name + " is not one that it can have";
  const bool accepted = X509_verify_cert(context.get()) == 1;
  if (accepted && good_until != nullptr) *good_until = first_end(context.get(), lists_->ends);
  ERR_clear_error();
  return accepted ? "" : reason_of(context.get(), shown_as_, name);
}

}  // namespace kilokv::tls
