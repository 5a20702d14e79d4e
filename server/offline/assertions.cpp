#include "server/offline/assertions.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "server/storage/last_file_read.hpp"

namespace kilokv::server::offline {
namespace {

constexpr int kExitDamaged = 1;

// Empty until explain_assertions() was called.
std::string& checked_directory() {
  static std::string directory;
  return directory;
}

bool is_of_rocksdb(const void* address) {
  Dl_info info = {};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  return path.substr(path.find_last_of('/') + 1).starts_with("librocksdb");
}

}  // namespace

void explain_assertions(const std::string& directory) { checked_directory() = directory; }

}  // namespace kilokv::server::offline

// The function that assert() calls when it fails. This definition takes the place of glibc's in the whole process,
// because the program comes first where the dynamic linker looks.
extern "C" [[noreturn]] void __assert_fail(  // NOLINT(bugprone-reserved-identifier): the name is glibc's
    const char* assertion, const char* file, unsigned int line, const char* function) noexcept {
  using namespace kilokv::server;  // NOLINT(google-build-using-namespace): short names for two functions
  if (offline::is_of_rocksdb(__builtin_return_address(0)) && !offline::checked_directory().empty()) {
    const std::string read = storage::last_file_read();
    std::fprintf(stderr,
                 "damage: data directory %s: its files do not fit together: an assertion of RocksDB failed%s%s: %s\n",
                 offline::checked_directory().c_str(), read.empty() ? "" : " after it read ",
                 (read.empty() ? read : read + ", which is probably damaged").c_str(), assertion);
    std::_Exit(offline::kExitDamaged);
  }
  std::fprintf(stderr, "an assertion failed: %s in %s (%s:%u)\n", assertion, function, file, line);
  std::abort();
}
