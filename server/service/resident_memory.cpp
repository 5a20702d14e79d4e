#include "server/service/resident_memory.hpp"

#include <unistd.h>

#include <fstream>

namespace kilokv::server {

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");  // in pages: all, resident
  std::uint64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace kilokv::server
