#include "server/machine_memory.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace kilokv::server {
namespace {

// The number in the file; 0: there is none, or the file says "max".
std::uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : 0;
}

std::uint64_t lower(std::uint64_t a, std::uint64_t b) { return a == 0 || (b != 0 && b < a) ? b : a; }

// The lowest limit on the way from the group up to the top. Inside a container, the path may be one that only the host
// can see. Then only the top is there, and it is the group of the container.
std::uint64_t lowest_limit(const std::string& top, std::string group, const std::string& file) {
  std::uint64_t lowest = 0;
  while (true) {
    std::string path = top;
    path.append(group).append("/").append(file);
    lowest = lower(lowest, number_in(path));
    if (group.empty()) return lowest;
    group.resize(std::min(group.rfind('/'), group.size() - 1));
  }
}

std::uint64_t cgroup_limit(const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  std::uint64_t lowest = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);  // number:controllers:path
    std::string number, controllers, path;
    if (!std::getline(fields, number, ':') || !std::getline(fields, controllers, ':') || !std::getline(fields, path)) {
      continue;
    }
    if (path == "/") path.clear();
    if (controllers.empty()) {
      lowest = lower(lowest, lowest_limit(mounts, path, "memory.max"));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      lowest = lower(lowest, lowest_limit(mounts + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return lowest;
}

std::uint64_t total_memory(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  while (file >> name) {
    if (name == "MemTotal:" && file >> kib) return kib << 10;
    std::getline(file, name);
  }
  return 0;
}

}  // namespace

std::uint64_t MachineMemory::usable() const { return lower(machine_bytes, cgroup_bytes); }

// Version 1 says "no limit" as a number beyond every machine.
MachineMemory machine_memory(const std::string& root) {
  MachineMemory memory{total_memory(root), cgroup_limit(root)};
  if (memory.machine_bytes != 0 && memory.cgroup_bytes >= memory.machine_bytes) memory.cgroup_bytes = 0;
  return memory;
}

}  // namespace kilokv::server
