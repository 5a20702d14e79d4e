// How --memory-limit is shared out.
//
// Each part of the server has a bound (memory_bounds). The data gets what the limit leaves after all bounds. So no part
// can take what another one was promised. Defaults of bounds are for a limit of 16 GiB or more. With a lower limit they
// are cut in proportion, down to the least that works. Bounds that somebody has set are not cut.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "server/config.hpp"
#include "server/core/database_status.hpp"

namespace kilokv::server {

// The share of the usable memory that is the limit if none is set.
inline constexpr std::uint64_t kLimitPercent = 70;

// Code, threads, and what is too small to be counted.
inline constexpr std::uint64_t kProcessBytes = std::uint64_t{48} << 20;

// Chooses the limit if none is set, cuts the bounds, and sets what is left for data. `usable_bytes`: of the machine or
// cgroup; 0: unknown, and then there is no limit unless one is set. INVALID_ARGUMENT: the bounds leave too little for
// data; the message lists them, and names the least limit that works.
Status plan_memory(std::uint64_t usable_bytes, ServerOptions* options);

// What the buffers of storage may take with the batches of these options.
std::uint64_t storage_bound_of(const ServerOptions& options);

// What the pages over HTTP, and their connections, may take.
std::uint64_t http_bound_of(const ServerOptions& options);

// The owners outside of the database, with their bounds. What storage and the process hold is filled in when it is
// known.
std::vector<MemoryOwner> memory_bounds(const ServerOptions& options);

}  // namespace kilokv::server
