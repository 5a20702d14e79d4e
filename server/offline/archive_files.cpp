#include "server/offline/archive_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "server/storage/archive_name.hpp"

namespace kilokv::server::offline {
namespace {

Status refused(const std::string& what) { return {StatusCode::failed_precondition, ErrorReason::failed, what}; }

}  // namespace

std::string last_name(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::vector<std::string> archive_folders(const std::string& directory) {
  std::vector<std::string> folders;
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) return {};
  if (storage::is_archive_folder(last_name(directory))) return {directory};
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (storage::is_archive_folder(it->path().filename().string())) folders.push_back(it->path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Result<std::vector<ArchiveFile>> archive_files(const std::string& directory, const Incarnation& incarnation) {
  const std::string folder = storage::archive_folder(directory, incarnation);
  Result<std::vector<ArchiveFile>> files = archive_files_in(folder);
  if (files.ok() && files->empty()) return refused("there is no file of the archive in " + folder);
  return files;
}

Result<std::vector<ArchiveFile>> archive_files_in(const std::string& folder) {
  std::vector<ArchiveFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto batches = storage::batches_of_archive_file(it->path().filename().string())) {
      files.push_back({it->path().string(), batches->first, batches->second});
    }
  }
  if (error) return refused("cannot list the files of the archive in " + folder + ": " + error.message());
  std::sort(files.begin(), files.end(), [](const ArchiveFile& a, const ArchiveFile& b) {
    return std::tie(a.first_batch, a.last_batch) < std::tie(b.first_batch, b.last_batch);
  });
  return files;
}

}  // namespace kilokv::server::offline
