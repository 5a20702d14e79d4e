// What the processors of this machine did during a part of a run: for this program, for the server if it runs here, and
// for everything else. All of it comes from /proc. Thread safety: pure functions, but for the reads of /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace kilokv::bench {

// Where the server runs. Hidden: on this machine, but this program may not see the process. Then its processor time
// cannot be told from that of others.
enum class ServerPlace { elsewhere, here, hidden };

struct ServerFound {
  ServerPlace place = ServerPlace::hidden;
  pid_t pid = 0;  // if it is here
};

// Looks for the process that listens on the port of `endpoint` (HOST:PORT). If no socket of this machine listens on
// that port, the server is elsewhere.
ServerFound find_listener(const std::string& endpoint);

// Processor times since the start of the machine or of a process, in seconds.
struct CpuTimes {
  std::int64_t at_us = 0;                    // steady clock
  double busy = 0, idle = 0, steal = 0;      // of all processors; busy: user, nice and system
  double client = 0, server = 0;             // of the processes
  std::map<std::int64_t, double> by_thread;  // of this program
};

// Reads /proc now. `server_pid`: 0: the server is not here.
CpuTimes read_cpu_times(pid_t server_pid);
// The numbers of the first line of /proc/stat. Other fields stay 0.
CpuTimes parse_machine_times(const std::string& line, double ticks_per_s);
// The user and system time of a line of /proc/PID/stat, in seconds; the name in it may hold blanks and brackets.
double parse_process_time(const std::string& line, double ticks_per_s);

// Shares of the time between two moments. A share of the machine is 1 if all processors did nothing else.
struct CpuUse {
  bool known = false;  // whether the part was long enough: at least kCpuLeastUs
  ServerPlace place = ServerPlace::hidden;
  std::uint32_t cores = 0;     // of the machine
  double client = 0;           // of the processors that this program may use
  double client_machine = 0;   // the same, of the machine
  double busiest_thread = 0;   // of this program; of one processor
  double server = 0;           // of the machine; 0 if it is not here
  double others = 0;           // of the machine; 0 if the server is hidden
  double steal = 0, idle = 0;  // of the machine
};
inline constexpr std::int64_t kCpuLeastUs = 100'000;  // the times in /proc have steps of 10 ms

// `own_cores`: the processors that this program may use.
CpuUse cpu_between(const CpuTimes& begin, const CpuTimes& end, ServerPlace place, std::uint32_t cores,
                   std::uint32_t own_cores);
std::uint32_t machine_cores();
std::uint32_t own_cores();

}  // namespace kilokv::bench
