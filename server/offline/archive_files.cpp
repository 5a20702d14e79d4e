#include "server/offline/archive_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "server/storage/archive_name.hpp"

namespace kilokv::server::offline {

Result<std::vector<ArchiveFile>> archive_files(const std::string& directory, const Incarnation& incarnation) {
  return archive_files_in(storage::archive_folder(directory, incarnation));
}

Result<std::vector<ArchiveFile>> archive_files_in(const std::string& folder) {
  std::vector<ArchiveFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto batches = storage::batches_of_archive_file(it->path().filename().string())) {
      files.push_back({it->path().string(), batches->first, batches->second});
    }
  }
  if (files.empty()) {
    return Status(StatusCode::failed_precondition, ErrorReason::failed,
                  "there is no file of the archive in " + folder + (error ? ": " + error.message() : std::string()));
  }
  std::sort(files.begin(), files.end(),
            [](const ArchiveFile& a, const ArchiveFile& b) { return a.first_batch < b.first_batch; });
  return files;
}

}  // namespace kilokv::server::offline
