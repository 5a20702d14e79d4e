// The byte form of changes of the access table, and of the table as a whole: what the log and checkpoints store.
//
//   change  u8 kind, then for a role: name, u8 rights (1 admin, 2 metrics), ranges to read, ranges to write
//                    for a user: name, roles, names of certificates, and u32 weight unless it is 1
//                    for a token: id, user, 32 bytes SHA-256 of its secret, i64 created, i64 expires
//                    to remove one: its name, or its id
//   table   changes that make it, from an empty one, each with its length
//
// Lengths and counts are u32. A string is its length and its bytes; a range is two strings; a list is its count and
// its elements.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "server/core/access/access_table.hpp"

namespace kilokv::server {

std::string encode_change(const AccessChange& change);
// Errors: DATA_LOSS if encode_change cannot have written the bytes.
Result<AccessChange> decode_change(std::string_view bytes);

std::string encode_table(const AccessTable& table);
Result<AccessTable> decode_table(std::string_view bytes);

}  // namespace kilokv::server
