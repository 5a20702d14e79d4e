// Users, roles and tokens of a server that runs with logins. All calls need the admin right.
//
// A user has the rights of all its roles. It logs in with a token, or with a client certificate. A change is durable
// when the call returns. After a call that takes a right away, nothing runs on the server that needs it.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kilokv/client.hpp"

namespace kilokv::client {

// The keys from `from` on that are less than `to`. An empty `to`: there is no upper bound.
struct KeyRange {
  std::string from, to;
};
// The range of all keys that begin with the prefix. An empty prefix: all keys.
KeyRange keys_with_prefix(std::string prefix);

struct RoleRights {
  std::string role;
  std::vector<KeyRange> read;   // guards, GET, RANGE_GET (also in reverse), Scan
  std::vector<KeyRange> write;  // PUT, ADD, DELETE, DELETE_RANGE
  bool admin = false;           // users, roles and tokens; what others have parked
  bool metrics = false;         // the status of the server
};

struct UserChange {
  std::string user;
  std::vector<std::string> add_roles, remove_roles;
  std::vector<std::string> add_certificates, remove_certificates;  // names in client certificates
  std::uint32_t weight = 0;  // the user's part of the turns, compared with those of others: 1 to 100; 0: no change
};

struct User {
  std::string name;
  std::vector<std::string> roles, certificates;
  std::uint32_t weight = 1;
};

struct Token {
  std::string id, user;
  std::int64_t created_us = 0;  // microseconds since the Unix epoch
  std::int64_t expires_us = 0;  // 0: never
};

struct NewToken {
  std::string token;  // with its secret; the server cannot show it again
  std::string id;
};

// Errors: permission_denied without the admin right; unimplemented if the server has no
// logins; not_found if what is named is not there; failed_precondition if nobody would be left who has the admin right.
class AccessAdmin {
 public:
  // Waits for the server as Client::connect does, with the same errors.
  static Expected<std::unique_ptr<AccessAdmin>> connect(const ClientOptions& options);
  virtual ~AccessAdmin() = default;

  virtual Error grant(const RoleRights& rights) = 0;   // makes the role if it does not exist
  virtual Error revoke(const RoleRights& rights) = 0;  // each range must be one that the role has
  virtual Error remove_role(const std::string& role) = 0;
  virtual Error change_user(const UserChange& change) = 0;  // makes the user if it does not exist
  virtual Error remove_user(const std::string& user) = 0;   // with its tokens
  virtual Expected<NewToken> create_token(const std::string& user, std::uint64_t expires_in_us) = 0;  // 0: never
  virtual Error remove_token(const std::string& id) = 0;

  virtual Expected<std::vector<RoleRights>> list_roles() = 0;
  virtual Expected<std::vector<User>> list_users() = 0;
  virtual Expected<std::vector<Token>> list_tokens() = 0;
};

}  // namespace kilokv::client
