// Digest of a request's content, to tell a retry from another request under the same number.
//
// XXH3, 128 bits, over a canonical serialization: keys, values and ranges by their bytes at each use, never by their
// place in the columns; fields that a guard or operation does not use are left out. So the same transactions have the
// same digest, whichever encoding they came in. Digests are in the log: changing the serialization makes retries of
// older requests fail with INVALID_ARGUMENT.
#pragma once

#include "engine/base/types.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::server {

Hash128 digest_of(const engine::TransactionColumns& columns);

}  // namespace kilokv::server
