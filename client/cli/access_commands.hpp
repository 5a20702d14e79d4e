// The commands of kilokv for users, roles and tokens: kilokv user|role|token. Each connects, does its work, prints, and
// returns the exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/commands.hpp"
#include "kilokv/access.hpp"

namespace kilokv::client {

struct RightsArguments {
  std::string role;
  std::vector<std::string> read_prefixes, write_prefixes;  // an empty one: all keys
  std::vector<std::string> read_ranges, write_ranges;      // pairs: from, to
  bool admin = false, metrics = false;
};

ExitCode run_role_grant(const CommonOptions& common, const RightsArguments& arguments);
ExitCode run_role_revoke(const CommonOptions& common, const RightsArguments& arguments);
ExitCode run_role_remove(const CommonOptions& common, const std::string& role);
ExitCode run_role_list(const CommonOptions& common);

ExitCode run_user_set(const CommonOptions& common, const UserChange& change);
ExitCode run_user_remove(const CommonOptions& common, const std::string& user);
ExitCode run_user_list(const CommonOptions& common);

// Writes the token to `file`, which only its owner may read and which must not exist yet; or, if `file` is empty, to
// standard output.
ExitCode run_token_create(const CommonOptions& common, const std::string& user, std::uint64_t expires_in_us,
                          const std::string& file);
ExitCode run_token_remove(const CommonOptions& common, const std::string& id);
ExitCode run_token_list(const CommonOptions& common);

}  // namespace kilokv::client
