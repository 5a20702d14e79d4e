#include "server/storage/last_file_read.hpp"

#include <algorithm>
#include <array>

namespace kilokv::server::storage {
namespace {

// RocksDB's names are shorter. An array needs no memory, also while the process ends.
thread_local std::array<char, 64> last_name{};

}  // namespace

void note_file_read(std::string_view path) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1).substr(0, last_name.size() - 1);
  *std::copy(name.begin(), name.end(), last_name.begin()) = '\0';
}

std::string last_file_read() { return last_name.data(); }

}  // namespace kilokv::server::storage
