// How far the log was acknowledged, in a small file beside it that is written after each sync and never synced itself.
// It survives a killed process, which is when a shortened or damaged end of the log cannot be told from a torn tail
// otherwise. After a power failure it may be older than the truth, never newer.
//
// Thread safety: one thread at a time.
#pragma once

#include <string>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"

namespace kilokv::server::storage {

inline constexpr char kAcknowledgedFileName[] = "ACKNOWLEDGED";

class AcknowledgedFile {
 public:
  AcknowledgedFile() = default;
  AcknowledgedFile(const AcknowledgedFile&) = delete;
  AcknowledgedFile& operator=(const AcknowledgedFile&) = delete;
  ~AcknowledgedFile();

  // Opens the file, or creates it durably. Returns the batch in it; 0 for a new one. DATA_LOSS: malformed.
  Result<BatchNumber> open(const std::string& directory);

  // Requires: open.
  Status write(BatchNumber batch) const;

 private:
  int file_ = -1;
};

}  // namespace kilokv::server::storage
