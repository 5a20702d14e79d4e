// A server with --read-only: it answers reads and stored results, and changes no data. Thread safety: pure functions.
#pragma once

#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::server {

// FAILED_PRECONDITION. `what`: what was asked for, such as "OpenSession".
Status read_only_refusal(const std::string& what);

// Whether a transaction has an operation that writes, in either list.
Status check_reads_only(const engine::TransactionColumns& transactions);

}  // namespace kilokv::server
