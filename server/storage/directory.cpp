#include "server/storage/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace kilokv::server::storage {

Status sync_directory(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0)
    return {StatusCode::internal, "cannot open " + directory + ": " + std::generic_category().message(errno)};
  const bool synced = ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  if (synced) return {};
  return {StatusCode::internal, "cannot sync " + directory + ": " + std::generic_category().message(error)};
}

Status ensure_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0750) == 0) {
    const std::filesystem::path parent = (std::filesystem::path(directory) / "").parent_path().parent_path();
    return sync_directory(parent.empty() ? "." : parent.string());
  }
  if (errno == EEXIST) return {};
  return {StatusCode::failed_precondition, ErrorReason::failed,
          "data directory " + directory + " cannot be created: " + std::generic_category().message(errno) +
              " (--data-dir)"};
}

}  // namespace kilokv::server::storage
