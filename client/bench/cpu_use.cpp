// Role: see cpu_use.hpp.
#include "client/bench/cpu_use.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "client/measure/clock.hpp"

namespace kilokv::bench {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

double ticks_per_second() { return static_cast<double>(std::max<long>(1, ::sysconf(_SC_CLK_TCK))); }

template <class T>
bool parse(const std::string& text, T* number, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *number, base);
  return error == std::errc{} && rest == end;
}

std::uint32_t port_of(const std::string& endpoint) {
  std::uint32_t port = 0;
  const std::size_t colon = endpoint.rfind(':');
  return colon != std::string::npos && parse(endpoint.substr(colon + 1), &port) ? port : 0;
}

// The inodes of the sockets that listen on the port, as texts.
std::set<std::string> listening_sockets(std::uint32_t port) {
  constexpr const char* kListens = "0A";
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the header
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, queues, timer, retries, user, timeout, inode;
      fields >> slot >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >> inode;
      std::uint32_t local_port = 0;
      const std::size_t colon = local.rfind(':');
      if (state != kListens || colon == std::string::npos) continue;
      if (parse(local.substr(colon + 1), &local_port, 16) && local_port == port) inodes.insert(inode);
    }
  }
  return inodes;
}

bool has_socket(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code error;
  for (fs::directory_iterator file(process / "fd", error), end; !error && file != end; file.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(file->path(), gone).string();
    if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9))) return true;
  }
  return false;
}

}  // namespace

ServerFound find_listener(const std::string& endpoint) {
  const std::set<std::string> inodes = listening_sockets(port_of(endpoint));
  if (inodes.empty()) return {ServerPlace::elsewhere, 0};
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    pid_t pid = 0;
    if (parse(entry->path().filename().string(), &pid) && has_socket(entry->path(), inodes)) {
      return {ServerPlace::here, pid};
    }
  }
  return {ServerPlace::hidden, 0};
}

CpuTimes parse_machine_times(const std::string& line, double ticks_per_s) {
  std::istringstream fields(line);
  std::string name;
  // Interrupts are left out: those of the loopback network belong to the run itself.
  double user = 0, nice = 0, system = 0, idle = 0, waits = 0, interrupts = 0, soft_interrupts = 0, steal = 0;
  fields >> name >> user >> nice >> system >> idle >> waits >> interrupts >> soft_interrupts >> steal;
  CpuTimes times;
  times.busy = (user + nice + system) / ticks_per_s;
  times.idle = (idle + waits) / ticks_per_s;
  times.steal = steal / ticks_per_s;
  return times;
}

double parse_process_time(const std::string& line, double ticks_per_s) {
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;  // proc(5) counts the fields from 1
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / ticks_per_s;
}

CpuTimes read_cpu_times(pid_t server_pid) {
  const double ticks = ticks_per_second();
  CpuTimes times = parse_machine_times(first_line("/proc/stat"), ticks);
  times.at_us = steady_now_us();
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  times.client = static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
  if (server_pid > 0) {
    times.server = parse_process_time(first_line("/proc/" + std::to_string(server_pid) + "/stat"), ticks);
  }
  std::error_code error;
  for (fs::directory_iterator task("/proc/self/task", error), end; !error && task != end; task.increment(error)) {
    std::int64_t thread = 0;
    if (!parse(task->path().filename().string(), &thread)) continue;
    times.by_thread[thread] = parse_process_time(first_line(task->path() / "stat"), ticks);
  }
  return times;
}

CpuUse cpu_between(const CpuTimes& begin, const CpuTimes& end, ServerPlace place, std::uint32_t cores,
                   std::uint32_t own_cores) {
  CpuUse use;
  use.place = place;
  use.cores = cores;
  if (end.at_us - begin.at_us < kCpuLeastUs || cores == 0 || own_cores == 0) return use;
  use.known = true;
  const double wall = static_cast<double>(end.at_us - begin.at_us) / 1e6, machine = wall * cores;
  const auto share = [](double part, double whole) { return std::clamp(part / whole, 0.0, 1.0); };
  const double client = end.client - begin.client;
  use.client = share(client, wall * own_cores);
  use.client_machine = share(client, machine);
  for (const auto& [thread, time] : end.by_thread) {
    const auto before = begin.by_thread.find(thread);
    const double spent = time - (before != begin.by_thread.end() ? before->second : 0);
    use.busiest_thread = std::max(use.busiest_thread, share(spent, wall));
  }
  // A server that was started again in between has less time than before.
  const double server = place == ServerPlace::here ? std::max(0.0, end.server - begin.server) : 0;
  use.server = share(server, machine);
  if (place != ServerPlace::hidden) use.others = share(end.busy - begin.busy - client - server, machine);
  use.steal = share(end.steal - begin.steal, machine);
  use.idle = share(end.idle - begin.idle, machine);
  return use;
}

std::uint32_t machine_cores() { return static_cast<std::uint32_t>(std::max<long>(1, ::sysconf(_SC_NPROCESSORS_ONLN))); }

std::uint32_t own_cores() {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof(mine), &mine) != 0) return machine_cores();
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&mine)));
}

}  // namespace kilokv::bench
