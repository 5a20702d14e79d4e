// Durable changes of directories. Thread safety: any thread.
#pragma once

#include <string>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// Makes the entries of `directory` durable.
Status sync_directory(const std::string& directory);

// Creates `directory` durably, unless it exists. Its parent must exist.
Status ensure_directory(const std::string& directory);

}  // namespace kilokv::server::storage
