// How much memory this process may take: that of the machine, or less if its cgroup (version 1 or 2) has a limit.
// Thread safety: reads files only.
#pragma once

#include <cstdint>
#include <string>

namespace kilokv::server {

struct MachineMemory {
  std::uint64_t machine_bytes = 0;  // 0: unknown
  std::uint64_t cgroup_bytes = 0;   // the lowest limit of the cgroup and of those around it; 0: none

  // The smaller of both; 0: unknown.
  std::uint64_t usable() const;
};

// `root`: of the file system; tests pass another one.
MachineMemory machine_memory(const std::string& root = "");

}  // namespace kilokv::server
