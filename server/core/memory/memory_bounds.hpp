// The most memory that each part of the core may hold, by its options. The sum of all bounds is what --memory-limit has
// to cover (server/memory_plan.hpp).
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "server/core/database_status.hpp"
#include "server/core/options.hpp"

namespace kilokv::server {

// A session without requests.
inline constexpr std::uint64_t kSessionBytes = 600;

// The newest access table, the one that is being made, that of the last answered batch, and what a checkpoint writes of
// it.
inline constexpr std::uint64_t kAccessCopies = 4;

// What a batch of full size takes, with what it returns and writes.
std::uint64_t whole_batch_bytes(const DatabaseOptions& options);

// The owners, with their bounds, and with nothing held. First come table, keys, index and values: these are the data,
// and share one bound, which "values" shows.
std::vector<MemoryOwner> memory_bounds(const DatabaseOptions& options);

}  // namespace kilokv::server
