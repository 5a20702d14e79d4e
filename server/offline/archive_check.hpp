// Checks the files of an archive: their frames, their log records, and that none is missing between two of them. It
// needs little memory, because it loads no state. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "server/offline/summary.hpp"

namespace kilokv::server::offline {

// Whether the directory has folders of incarnations, or is such a folder.
bool is_archive(const std::string& directory);

// Returns what each incarnation has, in the order of their names. `path`: the directory of --archive-dir, or the folder
// of an incarnation. `tell`: is told of each damage, and of each gap. FAILED_PRECONDITION: it cannot be read; a newer
// version has written it.
Result<std::vector<Summary>> check_archive(const std::string& path, const TellDamage& tell);

}  // namespace kilokv::server::offline
