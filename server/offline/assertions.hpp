// RocksDB as Debian builds it has assertions, and damaged files can fail one. The process ends then. These words say
// which file is probably damaged. server/last_words.hpp does the same for kilokvd.
//
// Thread safety: explain_assertions() from one thread.
#pragma once

#include <string>

namespace kilokv::server::offline {

// From now on, an assertion of RocksDB that fails prints a line about this directory, and ends the process with exit
// code 1, as a check does that has found a damage.
void explain_assertions(const std::string& directory);

}  // namespace kilokv::server::offline
