// The digest of a request's content. It tells a retry from another request with the same number.
//
// It is XXH3, 128 bits, over a canonical serialization. Keys, values and ranges count by their bytes at each use, never
// by their place in the columns. Fields that a guard or operation does not use are left out. So the same transactions
// have the same digest in every encoding. Digests are in the log. If the serialization changes, retries of older
// requests fail with INVALID_ARGUMENT.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::server {

Hash128 digest_of(const engine::TransactionColumns& columns);
// The digest of any bytes.
Hash128 digest_of(std::string_view bytes);

}  // namespace kilokv::server
