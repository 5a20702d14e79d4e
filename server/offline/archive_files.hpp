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

// The files of this incarnation in the directory of --archive-dir, in their order. FAILED_PRECONDITION: there are none.
Result<std::vector<ArchiveFile>> archive_files(const std::string& directory, const Incarnation& incarnation);

// The same for a folder of an incarnation.
Result<std::vector<ArchiveFile>> archive_files_in(const std::string& folder);

}  // namespace kilokv::server::offline
