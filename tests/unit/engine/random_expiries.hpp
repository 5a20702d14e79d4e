// Gives some PUTs and ADDs of a batch an expiry. Thread safety: none.
#pragma once

#include <cstdint>

#include "engine/txn/columns.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::engine {

// Each of them with this chance. Times are near the stamp, so that keys are often due.
inline void add_random_expiries(Random* random, double chance, TimeUs stamp_us, TransactionColumns* columns) {
  for (std::uint32_t i = 0; i < columns->op_kind.size(); ++i) {
    if (!takes_operand(static_cast<OpKind>(columns->op_kind[i])) || !random->chance(chance)) continue;
    const bool is_ttl = random->chance(0.5);
    const TimeUs near = random->between(1, 4000);
    columns->expiry_op.push_back(i);
    columns->expiry_kind.push_back(static_cast<std::uint8_t>(is_ttl ? Expiry::after : Expiry::at));
    columns->expiry_us.push_back(is_ttl ? near : random->chance(0.1) ? kNever - near : stamp_us - 1000 + near);
  }
}

}  // namespace kilokv::engine
