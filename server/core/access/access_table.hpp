// Who may do what: users, their roles, and the credentials with which they log in.
//
// A user has the rights of all its roles. A role has rights to keys (read, write), and rights to the server (admin,
// metrics). A user logs in with a token, or with a client certificate whose name the user has.
//
// The table changes by AccessChange alone. Changes are in the log, in the one order of batches, so that a replay gives
// the same table. apply() decides nothing: what a change replaces or removes does not depend on limits or on the time.
// A checkpoint has the table of exactly the batch that it covers, so that a replay makes each change once.
//
// Thread safety: a table that is shared does not change. Access (access.hpp) shares a new one after each change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/access/key_set.hpp"

namespace kilokv::server {

struct Role {
  std::string name;
  std::vector<KeyRange> read, write;
  bool admin = false;    // may change users, roles and tokens, and act on what belongs to others
  bool metrics = false;  // may ask for the state of the server
};

struct User {
  std::string name;
  std::vector<std::string> roles;
  std::vector<std::string> certificates;  // names in client certificates with which the user logs in
  std::uint32_t weight = 1;               // its part of the turns, compared with those of others
};

// The part of a token that the server knows. It has no secret in it: the secret of a token is random and has 256 bits,
// so that its hash does not help to find it.
struct Token {
  std::string id;  // public; names the token in lists and changes
  std::string user;
  std::array<unsigned char, 32> secret_hash{};  // SHA-256
  TimeUs created_us = 0;
  TimeUs expires_us = 0;  // 0: never
};

// One change. Only the member that belongs to the kind counts; to remove one, its name (or id) is enough.
struct AccessChange {
  enum class Kind : std::uint8_t {
    put_role = 1,
    remove_role = 2,
    put_user = 3,
    remove_user = 4,
    put_token = 5,
    remove_token = 6
  };
  Kind kind = Kind::put_role;
  Role role;
  User user;
  Token token;
};

// What a user may do: the rights of its roles together.
struct Rights {
  KeySet read, write;
  bool admin = false;
  bool metrics = false;
};

// Who logs in with a name in a certificate. `since` is another number each time the name is given, so that a name which
// was taken away and given again is not the same login.
struct CertificateHolder {
  std::string user;
  std::uint64_t since = 0;
};

// How a client has logged in.
struct Login {
  std::string user;
  std::string token;        // the id of its token; empty: by certificate
  std::string certificate;  // the name in the client's certificate; empty: by token
  std::uint64_t certificate_since = 0;
  TimeUs expires_us = 0;  // 0: never

  bool expired(TimeUs now_us) const { return expires_us != 0 && expires_us <= now_us; }
};

class AccessTable {
 public:
  // Limits of the table. All of it is in memory and in each checkpoint. kAccessBytesMax is another one: it has room for
  // about 5,000 users with a role and a token each.
  static constexpr std::size_t kRolesMax = 1000, kUsersMax = 10000, kTokensMax = 10000;
  static constexpr std::size_t kNameBytesMax = 128, kRangesMax = 256, kRolesOfUserMax = 64, kCertificatesMax = 16;
  static constexpr std::size_t kCertificateBytesMax = 256;
  static constexpr std::uint32_t kWeightMax = 100;

  // The table after these changes, of which there is at least one. `with_certificates`: the server asks clients for
  // certificates, so that somebody may log in with one. INVALID_ARGUMENT: a name or a count is beyond its limit, or a
  // range is empty. NOT_FOUND: what a change names is not there. RESOURCE_EXHAUSTED: the table is full.
  // FAILED_PRECONDITION: nobody would be left who may make changes.
  Result<AccessTable> after(std::span<const AccessChange> changes, bool with_certificates) const;
  // Makes the change without a check.
  void apply(const AccessChange& change);
  // The token that a new one replaces if the table has no room for it: the one that expired first. Null if there is
  // room, or if none had expired at `expired_by_us`.
  const Token* replaced_by(const Token& token, TimeUs expired_by_us) const;
  // Whether the change may take a right to keys, or a login, from somebody.
  bool takes_away(const AccessChange& change) const;

  const std::map<std::string, Role, std::less<>>& roles() const { return roles_; }
  const std::map<std::string, User, std::less<>>& users() const { return users_; }
  const std::map<std::string, Token, std::less<>>& tokens() const { return tokens_; }
  bool empty() const { return roles_.empty() && users_.empty() && tokens_.empty(); }
  // Whether somebody has the admin right, and can log in with something that does not expire.
  bool has_admin(bool with_certificates) const;
  // The memory of the table: its entries, with their names and ranges, and for each user the ranges of its roles once
  // more.
  std::size_t bytes() const;

  // The rights of somebody who has logged in. Null: the login does not count any more, because the token, the name of
  // the certificate or the user is gone. While the rights of a user stay the same, this is the same object.
  std::shared_ptr<const Rights> rights(const Login& login) const;
  // The weight of this user; 1 if there is none.
  std::uint32_t weight(std::string_view user) const;
  // Null if no user has this name in its certificates.
  const CertificateHolder* holder_of(std::string_view certificate) const;

  // A hash of everything in the table; 0 if it is empty. The same contents have the same hash.
  Hash128 hash() const;

 private:
  Status check(const AccessChange& change) const;
  Status check_user(const User& user) const;
  void find_rights(const std::string& user);
  // Those that the user has already stay as they are.
  void set_certificates(const std::string& user, const std::vector<std::string>& names);

  std::map<std::string, Role, std::less<>> roles_;
  std::map<std::string, User, std::less<>> users_;
  std::map<std::string, Token, std::less<>> tokens_;
  std::map<std::string, CertificateHolder, std::less<>> certificates_;  // by the name in the certificate
  std::uint64_t changes_ = 0;                                           // of this process: no login outlives it
  std::map<std::string, std::shared_ptr<const Rights>, std::less<>> rights_;
};

}  // namespace kilokv::server
