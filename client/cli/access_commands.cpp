#include "client/cli/access_commands.hpp"

#include <cerrno>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "client/command_line/secrets.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

ExitCode with_admin(const CommonOptions& common, const std::function<ExitCode(AccessAdmin*)>& work) {
  ClientOptions options = common.server;
  options.connect_timeout_us = common.timeout_us;
  options.request_timeout_us = common.timeout_us;
  const auto admin = AccessAdmin::connect(options);
  return admin ? work(admin->get()) : report(admin.error());
}

ExitCode change(const CommonOptions& common, const std::function<Error(AccessAdmin*)>& work) {
  return with_admin(common, [&work](AccessAdmin* admin) {
    const Error error = work(admin);
    return error ? report(error) : ExitCode::ok;
  });
}

std::vector<KeyRange> ranges_of(const std::vector<std::string>& prefixes, const std::vector<std::string>& pairs) {
  std::vector<KeyRange> ranges;
  ranges.reserve(prefixes.size() + pairs.size() / 2);
  for (const std::string& prefix : prefixes) ranges.push_back(keys_with_prefix(prefix));
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) ranges.push_back({pairs[i], pairs[i + 1]});
  return ranges;
}

RoleRights rights_of(const RightsArguments& a) {
  return {a.role, ranges_of(a.read_prefixes, a.read_ranges), ranges_of(a.write_prefixes, a.write_ranges), a.admin,
          a.metrics};
}

nlohmann::json key_json(const std::string& key) {
  std::string text;
  append_history_key(key, &text);
  return nlohmann::json::parse(text);
}

nlohmann::json ranges_json(const std::vector<KeyRange>& ranges) {
  nlohmann::json all = nlohmann::json::array();
  for (const KeyRange& range : ranges) all.push_back({{"from", key_json(range.from)}, {"to", key_json(range.to)}});
  return all;
}

// "all keys", "order/ to order0" and so on.
std::string range_text(const KeyRange& range) {
  if (range.from.empty() && range.to.empty()) return "all keys";
  if (range.to.empty()) return "from " + key_text(range.from);
  return (range.from.empty() ? "the first key" : key_text(range.from)) + " to " + key_text(range.to);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all.empty() ? "none" : all;
}

void print(const CommonOptions& common, const RoleRights& role) {
  if (common.output == OutputFormat::json) {
    std::cout << nlohmann::json{{"role", role.role},
                                {"read", ranges_json(role.read)},
                                {"write", ranges_json(role.write)},
                                {"admin", role.admin},
                                {"metrics", role.metrics}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << role.role << '\n';
  for (const KeyRange& range : role.read) std::cout << "  read   " << range_text(range) << '\n';
  for (const KeyRange& range : role.write) std::cout << "  write  " << range_text(range) << '\n';
  if (role.admin) std::cout << "  admin\n";
  if (role.metrics) std::cout << "  metrics\n";
}

void print(const CommonOptions& common, const User& user) {
  if (common.output == OutputFormat::json) {
    std::cout << nlohmann::json{{"user", user.name},
                                {"roles", user.roles},
                                {"certificates", user.certificates},
                                {"weight", user.weight}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << user.name << "\troles " << joined(user.roles) << "\tcertificates " << joined(user.certificates)
            << "\tweight " << user.weight << '\n';
}

void print(const CommonOptions& common, const Token& token) {
  if (common.output == OutputFormat::json) {
    std::cout << nlohmann::json{{"token", token.id},
                                {"user", token.user},
                                {"created_us", token.created_us},
                                {"expires_us", token.expires_us}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << token.id << '\t' << token.user << "\tcreated_us " << token.created_us << '\t'
            << (token.expires_us == 0 ? "never expires" : "expires_us " + std::to_string(token.expires_us)) << '\n';
}

template <class List>
ExitCode print_all(const CommonOptions& common, const List& list) {
  if (!list) return report(list.error());
  for (const auto& one : *list) print(common, one);
  return ExitCode::ok;
}

}  // namespace

ExitCode run_role_grant(const CommonOptions& common, const RightsArguments& arguments) {
  return change(common, [&](AccessAdmin* admin) { return admin->grant(rights_of(arguments)); });
}

ExitCode run_role_revoke(const CommonOptions& common, const RightsArguments& arguments) {
  return change(common, [&](AccessAdmin* admin) { return admin->revoke(rights_of(arguments)); });
}

ExitCode run_role_remove(const CommonOptions& common, const std::string& role) {
  return change(common, [&](AccessAdmin* admin) { return admin->remove_role(role); });
}

ExitCode run_role_list(const CommonOptions& common) {
  return with_admin(common, [&](AccessAdmin* admin) { return print_all(common, admin->list_roles()); });
}

ExitCode run_user_set(const CommonOptions& common, const UserChange& user) {
  return change(common, [&](AccessAdmin* admin) { return admin->change_user(user); });
}

ExitCode run_user_remove(const CommonOptions& common, const std::string& user) {
  return change(common, [&](AccessAdmin* admin) { return admin->remove_user(user); });
}

ExitCode run_user_list(const CommonOptions& common) {
  return with_admin(common, [&](AccessAdmin* admin) { return print_all(common, admin->list_users()); });
}

ExitCode run_token_create(const CommonOptions& common, const std::string& user, std::uint64_t expires_in_us,
                          const std::string& file) {
  return with_admin(common, [&](AccessAdmin* admin) {
    std::error_code error;  // not looked at: write_secret() meets it again, and reports it
    if (!file.empty() && std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
      std::cerr << "kilokv: " << file << " is there already, and is not overwritten; no token was made\n";
      return ExitCode::other;
    }
    const auto token = admin->create_token(user, expires_in_us);
    if (!token) return report(token.error());
    if (!file.empty() && !write_secret(file, token->token + '\n')) {
      std::cerr << "kilokv: cannot write " << file << ": " << std::generic_category().message(errno);
      // Nobody has seen the token, so it must not stay.
      const Error removed = admin->remove_token(token->id);
      std::cerr << (removed ? "; remove the token " + token->id + ", which nobody knows"
                            : "; the token was removed again")
                << '\n';
      return ExitCode::other;
    }
    if (common.output == OutputFormat::json) {
      nlohmann::json line = {{"token_id", token->id}, {"user", user}};
      if (file.empty()) line["token"] = token->token;
      std::cout << line.dump() << '\n';
    } else {
      std::cout << (file.empty() ? token->token : "token " + token->id + " of user " + user + " is in " + file) << '\n';
    }
    return ExitCode::ok;
  });
}

ExitCode run_token_remove(const CommonOptions& common, const std::string& id) {
  return change(common, [&](AccessAdmin* admin) { return admin->remove_token(id); });
}

ExitCode run_token_list(const CommonOptions& common) {
  return with_admin(common, [&](AccessAdmin* admin) { return print_all(common, admin->list_tokens()); });
}

}  // namespace kilokv::client
