// Says in the log why a library ends the process. RocksDB as Debian builds it keeps its assertions, and a damaged file
// can fail one of them. An exception can also leave a library's thread. Without this, the log would end in the middle,
// and the exit code would name only a signal.
//
// Thread safety: any thread may fail an assertion; the log is thread-safe.
#pragma once

#include <string>

namespace kilokv::server {

inline constexpr int kExitDataLoss = 3;

// From now on a failed assertion of RocksDB ends the process with kExitDataLoss, and with a line of the log that names
// `data_dir`, the assertion, and the file that the thread read last. A failed assertion of another library, and an
// exception that nobody catches, are also logged, and end in abort(). Call it once, before the process has threads. In
// a program that does not call it, the two end as usual.
void log_last_words(const std::string& data_dir);

}  // namespace kilokv::server
