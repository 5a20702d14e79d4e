#include "server/core_dumps.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

namespace kilokv::server {

Status set_core_dumps(bool allowed) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_CORE, &limit);
  limit.rlim_cur = allowed ? limit.rlim_max : 0;
  if (!allowed) limit.rlim_max = 0;
  if (::setrlimit(RLIMIT_CORE, &limit) != 0) {
    return Status(StatusCode::internal,
                  "the limit of core files cannot be set: " + std::generic_category().message(errno));
  }
  if (allowed) return {};
  std::ofstream filter("/proc/self/coredump_filter");  // a bit for each kind of memory that a core has
  filter << "0\n";
  filter.flush();
  // A system without /proc may lack the file. Then the limit alone counts.
  return {};
}

}  // namespace kilokv::server
