// Users, roles and tokens (kilokv/access.hpp).
#include "kilokv/access.hpp"

#include <algorithm>
#include <utility>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/reach.hpp"

namespace kilokv::client {
namespace {

void fill(const std::vector<KeyRange>& ranges, google::protobuf::RepeatedPtrField<v1::KeyRange>* out) {
  for (const KeyRange& range : ranges) {
    v1::KeyRange* one = out->Add();
    one->set_from(range.from);
    one->set_to(range.to);
  }
}

void fill(const RoleRights& rights, v1::RoleRights* out) {
  out->set_role(rights.role);
  fill(rights.read, out->mutable_read());
  fill(rights.write, out->mutable_write());
  out->set_admin(rights.admin);
  out->set_metrics(rights.metrics);
}

std::vector<KeyRange> ranges_of(const google::protobuf::RepeatedPtrField<v1::KeyRange>& ranges) {
  std::vector<KeyRange> out;
  for (const v1::KeyRange& range : ranges) out.push_back({range.from(), range.to()});
  return out;
}

class RemoteAccess final : public AccessAdmin {
 public:
  RemoteAccess(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : connection_(options, credentials) {}

  Error reach() { return reach_server(&connection_); }

  Error grant(const RoleRights& rights) override {
    v1::ChangeAccessRequest request;
    fill(rights, request.mutable_grant());
    return change(request).error();
  }
  Error revoke(const RoleRights& rights) override {
    v1::ChangeAccessRequest request;
    fill(rights, request.mutable_revoke());
    return change(request).error();
  }
  Error remove_role(const std::string& role) override {
    v1::ChangeAccessRequest request;
    request.set_remove_role(role);
    return change(request).error();
  }
  Error change_user(const UserChange& user) override {
    v1::ChangeAccessRequest request;
    v1::UserChange* out = request.mutable_user();
    out->set_user(user.user);
    out->mutable_add_roles()->Assign(user.add_roles.begin(), user.add_roles.end());
    out->mutable_remove_roles()->Assign(user.remove_roles.begin(), user.remove_roles.end());
    out->mutable_add_certificates()->Assign(user.add_certificates.begin(), user.add_certificates.end());
    out->mutable_remove_certificates()->Assign(user.remove_certificates.begin(), user.remove_certificates.end());
    out->set_weight(user.weight);
    return change(request).error();
  }
  Error remove_user(const std::string& user) override {
    v1::ChangeAccessRequest request;
    request.set_remove_user(user);
    return change(request).error();
  }
  Expected<NewToken> create_token(const std::string& user, std::uint64_t expires_in_us) override {
    v1::ChangeAccessRequest request;
    request.mutable_create_token()->set_user(user);
    request.mutable_create_token()->set_expires_in_us(expires_in_us);
    const auto response = change(request);
    if (!response) return response.error();
    return NewToken{response->token(), response->token_id()};
  }
  Error remove_token(const std::string& id) override {
    v1::ChangeAccessRequest request;
    request.set_remove_token(id);
    return change(request).error();
  }

  Expected<std::vector<RoleRights>> list_roles() override {
    std::vector<RoleRights> all;
    Error error = list(v1::ListAccessRequest::KIND_ROLES, [&all](const v1::ListAccessResponse& page) {
      for (const v1::RoleRights& role : page.roles()) {
        all.push_back({role.role(), ranges_of(role.read()), ranges_of(role.write()), role.admin(), role.metrics()});
      }
      return all.empty() ? std::string() : all.back().role;
    });
    if (error) return error;
    return all;
  }
  Expected<std::vector<User>> list_users() override {
    std::vector<User> all;
    Error error = list(v1::ListAccessRequest::KIND_USERS, [&all](const v1::ListAccessResponse& page) {
      for (const v1::AccessUser& user : page.users()) {
        all.push_back({user.user(),
                       {user.roles().begin(), user.roles().end()},
                       {user.certificates().begin(), user.certificates().end()},
                       std::max(user.weight(), 1u)});
      }
      return all.empty() ? std::string() : all.back().name;
    });
    if (error) return error;
    return all;
  }
  Expected<std::vector<Token>> list_tokens() override {
    std::vector<Token> all;
    Error error = list(v1::ListAccessRequest::KIND_TOKENS, [&all](const v1::ListAccessResponse& page) {
      for (const v1::AccessToken& token : page.tokens()) {
        all.push_back({token.id(), token.user(), token.created_us(), token.expires_us()});
      }
      return all.empty() ? std::string() : all.back().id;
    });
    if (error) return error;
    return all;
  }

 private:
  // A change that may have run is not sent again: the second one could fail, or make a second token.
  Expected<v1::ChangeAccessResponse> change(const v1::ChangeAccessRequest& request) {
    v1::ChangeAccessResponse response;
    Error error =
        connection_.call("ChangeAccess", connection_.deadline({}), Retry::when_refused,
                         [&](auto* stub, auto* context) { return stub->ChangeAccess(context, request, &response); });
    if (error) return error;
    return response;
  }

  // `take`: adds the page, and returns the name of its last entry.
  template <class Take>
  Error list(v1::ListAccessRequest::Kind kind, const Take& take) {
    v1::ListAccessRequest request;
    v1::ListAccessResponse page;
    request.set_kind(kind);
    do {
      Error error =
          connection_.call("ListAccess", connection_.deadline({}), Retry::always,
                           [&](auto* stub, auto* context) { return stub->ListAccess(context, request, &page); });
      if (error) return error;
      request.set_after(take(page));
    } while (page.more());
    return {};
  }

  Connection connection_;
};

}  // namespace

KeyRange keys_with_prefix(std::string prefix) {
  std::string to = prefix;
  while (!to.empty() && to.back() == '\xff') to.pop_back();
  if (!to.empty()) to.back() = static_cast<char>(to.back() + 1);
  return {std::move(prefix), std::move(to)};
}

Expected<std::unique_ptr<AccessAdmin>> AccessAdmin::connect(const ClientOptions& options) {
  return connect_as<RemoteAccess, AccessAdmin>(options);
}

}  // namespace kilokv::client
