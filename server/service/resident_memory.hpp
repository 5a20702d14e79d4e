// The resident memory of this process, as the system counts it. Thread safety: any thread.
#pragma once

#include <cstdint>

namespace kilokv::server {

std::uint64_t resident_bytes();  // 0: unknown

}  // namespace kilokv::server
