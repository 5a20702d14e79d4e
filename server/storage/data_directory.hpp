// The data directory itself: one process has it, only its owner reads it, and a new database is created whole or again.
//
// A new database is made only in a directory that is empty or new. Among files of others, a mistyped path would start
// an empty database, and some of their names could be taken for files of the database.
//
// The lock is flock() on the directory, because a file in it can be removed. RocksDB's file LOCK keeps away only
// programs that use RocksDB alone. Thread safety: check_in_place() from any thread; the rest from one thread, at
// start-up.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// This file is there from before the first file of a new database until the database is whole. Nobody was told of
// anything in such a directory, so the next start removes the files and creates the database again.
inline constexpr char kCreationFileName[] = "CREATING";

// The error for a directory that this server must not use: "data directory PATH WHY".
Status refuse_directory(const std::string& directory, const std::string& why);

// Makes the entries of `directory` durable.
Status sync_directory(const std::string& directory);

// Whether a path leads into a directory, or to it. An empty path does not.
bool lies_in(const std::string& path, const std::string& directory);

class DataDirectory {
 public:
  // Creates the directory unless it exists, and locks it. The parent must exist. Errors: FAILED_PRECONDITION: another
  // process has the directory, or it cannot be created, opened, locked or written.
  static Result<std::unique_ptr<DataDirectory>> open(const std::string& path);
  // The same for a directory that is there. Nothing in it changes.
  static Result<std::unique_ptr<DataDirectory>> open_existing(const std::string& path);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  const std::string& path() const { return path_; }

  // INTERNAL unless the path still leads to the directory that is locked. If it leads elsewhere, a second server may
  // have that place, and nothing may be acknowledged any more.
  Status check_in_place() const;

  // Takes the rights of group and others away from the files of the database. Also from the directory, unless a new
  // database begins beside files of others. `open_to_others` is called with each path that keeps such rights. Requires:
  // the directory is known to be ours.
  Status close_to_others(bool creates, const std::function<void(const std::string&)>& open_to_others) const;

  // FAILED_PRECONDITION: the directory has something that is not of this server, so no new database is made there. The
  // error names one such thing. A folder lost+found, which a new file system has, and `own_files` do not count.
  Status check_for_others(const std::vector<std::string>& own_files) const;

  // Whether a creation began here and did not end.
  bool creation_began() const;
  // Removes what an earlier creation left, and durably notes that one begins. Errors: DATA_LOSS: an earlier creation
  // cannot have left these files, because they have data or say that a batch was acknowledged; INTERNAL.
  Status begin_creation() const;
  // From now on the files count. Requires: all of them are durable.
  Status end_creation() const;

 private:
  DataDirectory(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Status lock();
  Status remove_remains() const;
  Status sync_own_entry() const;

  const std::string path_;
  const int descriptor_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace kilokv::server::storage
