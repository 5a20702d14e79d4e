// Whether a user may run transactions. The check is on what the transactions say, not on what will happen: both lists
// of operations count, and a range counts as a whole. So the answer does not depend on the data, and tells nothing
// about it.
//
//   read   keys and ranges of guards, of GET, of RANGE_GET and of RANGE_GET_REVERSE
//   write  keys and ranges of PUT, ADD, DELETE and DELETE_RANGE
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "server/core/access/access_table.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {

// Checks transactions [begin, end). PERMISSION_DENIED names the first guard or operation for which a right is missing,
// and the right. `user`: for the message. `index_of`: place of a transaction in its request.
Status check_rights(const engine::TransactionColumns& columns, std::uint32_t begin, std::uint32_t end,
                    const Rights& rights, const std::string& user,
                    const std::function<std::uint32_t(std::uint32_t)>& index_of);

// PERMISSION_DENIED: the rights do not let the user read all keys that these stored results show. For results of which
// the request does not name all keys any more, because they were uploaded.
Status check_shown(const ResultSlice& slice, const Rights& rights, const std::string& user);
// PERMISSION_DENIED: the newest rights of the login do not let it read all keys of [from, to).
Status check_read_range(const AccessTable& table, const Login& login, std::string_view from, std::string_view to);
// What the login may do at this time. PERMISSION_DENIED: it does not count any more. UNAUTHENTICATED: its token has
// expired.
Result<std::shared_ptr<const Rights>> rights_at(const AccessTable& table, const Login& login, TimeUs now_us);
// PERMISSION_DENIED: the user has no right to `right` (such as "read" or "admin"). `field`: what needs it. `to`: the
// rest of the sentence, such as ` to the key "a"`.
Status right_missing(const std::string& user, const char* right, const std::string& field, const std::string& to = {});
// PERMISSION_DENIED: the login of a request does not count any more.
Status login_gone(const std::string& user);
// UNAUTHENTICATED: the token of a login has expired.
Status login_expired(const Login& login);

}  // namespace kilokv::server
