#include "server/last_words.hpp"

#include <dlfcn.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "server/core/one_line.hpp"
#include "server/storage/last_file_read.hpp"

namespace kilokv::server {
namespace {

// Empty until log_last_words() was called.
std::string& data_directory() {
  static std::string directory;
  return directory;
}

void log_now(const std::string& code, const std::string& error) {
  spdlog::critical("kilokvd fatal code={} error=\"{}\"", code, one_line(error));
  spdlog::default_logger()->flush();
}

// The file name of the program or library that holds the address.
std::string_view library_of(const void* address) {
  Dl_info info = {};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "a library";
  const std::string_view path = info.dli_fname;
  return path.substr(path.find_last_of('/') + 1);
}

[[noreturn]] void end_by_terminate() {
  std::string what = "no exception";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      what = exception.what();
    } catch (...) {
      what = "an exception of an unknown type";
    }
  }
  log_now("INTERNAL", "a thread ended by std::terminate: " + what);
  std::abort();
}

[[noreturn]] void end_by_assertion(std::string_view library, const std::string& assertion) {
  if (library.starts_with("librocksdb")) {
    const std::string read = storage::last_file_read();
    log_now("DATA_LOSS", "data directory " + data_directory() +
                             ": its files do not fit together, because an assertion of RocksDB failed" +
                             (read.empty() ? "" : " after it read " + read + ", which is probably damaged") + ": " +
                             assertion);
    std::_Exit(kExitDataLoss);
  }
  log_now("INTERNAL", "an assertion of " + std::string(library) + " failed: " + assertion);
  std::abort();
}

}  // namespace

void log_last_words(const std::string& data_dir) {
  data_directory() = data_dir;
  std::set_terminate(end_by_terminate);
}

}  // namespace kilokv::server

// The function that assert() calls when it fails. This definition takes the place of glibc's in the whole process,
// because the program comes first where the dynamic linker looks.
extern "C" [[noreturn]] void __assert_fail(  // NOLINT(bugprone-reserved-identifier): the name is glibc's
    const char* assertion, const char* file, unsigned int line, const char* function) noexcept {
  const std::string text = std::string(assertion) + " in " + function + " (" + file + ":" + std::to_string(line) + ")";
  if (kilokv::server::data_directory().empty()) {
    std::fprintf(stderr, "an assertion failed: %s\n", text.c_str());
    std::abort();
  }
  kilokv::server::end_by_assertion(kilokv::server::library_of(__builtin_return_address(0)), text);
}
