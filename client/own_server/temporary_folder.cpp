// Role: see temporary_folder.hpp.
#include "client/own_server/temporary_folder.hpp"

#include <stdlib.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/measure/steady_scan.hpp"

namespace kilokv::own_server {

client::Expected<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make(const std::string& prefix) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string pattern = (parent / (prefix + "-XXXXXX")).string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return bench::make_error(client::ErrorCode::internal, "cannot make a temporary folder " + pattern);
  }
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(pattern));
}

TemporaryFolder::~TemporaryFolder() {
  if (keep_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kilokv::own_server
