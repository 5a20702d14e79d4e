// The newest acknowledged batch, in a small file beside the log. The file is written after each sync, and never synced
// itself. It survives a killed process. Without it, the start after a kill could not tell a shortened or damaged end of
// the log from a torn tail. After a power failure it may be older than the truth, but never newer.
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

  // Opens the file, or creates it durably. Returns the batch in it, or 0 for a new file. Errors: DATA_LOSS: malformed.
  Result<BatchNumber> open(const std::string& directory);

  // Reads the batch, and changes nothing. 0: there is no such file. Errors: those of open().
  static Result<BatchNumber> read(const std::string& directory);

  // Whether the file says that no batch was acknowledged, or is still empty.
  static bool is_of_a_new_database(const std::string& path);

  // Writes the batch. Requires: open() succeeded.
  Status write(BatchNumber batch) const;

 private:
  int file_ = -1;
};

}  // namespace kilokv::server::storage
