// The files of an archive. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/commit_log.hpp"

namespace kilokv::server::offline {

struct ArchiveFile {
  std::string path;
  BatchNumber first_batch = 0, last_batch = 0;
};

// The folders of incarnations in a directory, in the order of their names, or the directory itself if it is one.
std::vector<std::string> archive_folders(const std::string& directory);

// The last part of a path, which may end with a slash.
std::string last_name(const std::string& path);

// The files of this incarnation in the directory of --archive-dir, in their order. FAILED_PRECONDITION: there are none.
Result<std::vector<ArchiveFile>> archive_files(const std::string& directory, const Incarnation& incarnation);

// The same for a folder of an incarnation, which may have no file yet. A file that was copied again after an error can
// begin with the same batch as another one, and is after it. FAILED_PRECONDITION: the folder cannot be read.
Result<std::vector<ArchiveFile>> archive_files_in(const std::string& folder);

}  // namespace kilokv::server::offline
