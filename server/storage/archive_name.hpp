// Names in the directory of an archive: a folder for each incarnation, and in it files named by their batches.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/types.hpp"
#include "server/core/commit_log.hpp"

namespace kilokv::server::storage {

std::string archive_folder(const std::string& directory, const Incarnation& incarnation);
bool is_archive_folder(std::string_view name);
// 00000000000000000001-00000000000000000020.log
std::string archive_file_name(BatchNumber first, BatchNumber last);
// The first and the last batch of a file with such a name; nothing for other names.
std::optional<std::pair<BatchNumber, BatchNumber>> batches_of_archive_file(std::string_view name);

}  // namespace kilokv::server::storage
