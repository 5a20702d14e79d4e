// The file of the database that a thread has read last. If RocksDB ends the process, this is probably the damaged one.
// Thread safety: any thread. Each thread knows only its own file.
#pragma once

#include <string>
#include <string_view>

namespace kilokv::server::storage {

// Keeps the name, without its folder.
void note_file_read(std::string_view path);

// Empty if this thread has read no file.
std::string last_file_read();

}  // namespace kilokv::server::storage
