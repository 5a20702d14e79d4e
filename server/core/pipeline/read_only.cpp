#include "server/core/pipeline/read_only.hpp"

#include <algorithm>
#include <string>

#include "engine/txn/kinds.hpp"

namespace kilokv::server {
namespace {

bool is_write(engine::OpKind kind) { return !engine::returns_values(kind); }

}  // namespace

Status read_only_refusal(const std::string& what) {
  return {StatusCode::failed_precondition, ErrorReason::read_only,
          what + ": this server only reads; start it with --read-only off"};
}

Status check_reads_only(const engine::TransactionColumns& transactions) {
  const auto& kinds = transactions.op_kind;
  const bool has_write = std::any_of(kinds.begin(), kinds.end(),
                                     [](std::uint8_t kind) { return is_write(static_cast<engine::OpKind>(kind)); });
  return has_write ? read_only_refusal("a transaction has an operation that writes") : Status();
}

}  // namespace kilokv::server
