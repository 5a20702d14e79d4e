#include "server/storage/store.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "server/core/fail_point.hpp"
#include "server/storage/acknowledged_file.hpp"
#include "server/storage/directory.hpp"
#include "server/storage/fault_file_system.hpp"
#include "server/storage/store_options.hpp"
#include "server/storage/wal_check.hpp"

namespace kilokv::server::storage {
namespace {

// Says what happened, and then adds RocksDB's own message, which names the file.
std::string in_words(const rocksdb::Status& status) {
  const char* words = "the storage library refused it";
  if (status.IsNoSpace()) {
    words = "the disk is full";
  } else if (status.IsCorruption()) {
    words = "a file is damaged";
  } else if (status.IsIOError()) {
    words = "the file system reported an error";
  } else if (status.IsInvalidArgument()) {
    words = "the files do not fit this version of kilokvd";
  }
  return std::string(words) + " (RocksDB says: " + status.ToString() + ")";
}

Status refuse(const std::string& directory, const std::string& why) {
  return {StatusCode::failed_precondition, ErrorReason::failed, "data directory " + directory + " " + why};
}

// Whether the directory has files of a database, although its CURRENT file is missing.
Result<bool> has_remains(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == kAcknowledgedFileName || name.starts_with("MANIFEST-") || name.ends_with(".sst")) return true;
  }
  if (error) return Status(StatusCode::internal, "cannot list " + directory + ": " + error.message());
  return false;
}

// An interrupted creation leaves some of our families, all empty. A database that has anything else, but not our
// metadata, is not ours.
Status check_unfinished(const std::string& directory, const std::vector<std::string>& names) {
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(names.size());
  for (const std::string& name : names) descriptors.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::OpenForReadOnly(rocksdb::DBOptions(), directory, descriptors, &handles, &db);
  if (!opened.ok()) return refuse(directory, "is not a KiloKV database: " + in_words(opened));
  const std::unique_ptr<rocksdb::DB> owner(db);
  bool empty = true;
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), handle));
    it->SeekToFirst();
    empty = empty && !it->Valid() && it->status().ok();
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  return empty ? Status() : refuse(directory, "holds another RocksDB database; choose an empty directory (--data-dir)");
}

// Checks before anything is written: the directory must be empty or ours, otherwise it is refused.
Status check_directory(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory + "/CURRENT", error)) {
    const Result<bool> remains = has_remains(directory);
    if (!remains.ok()) return remains.status();
    if (!*remains) return {};
    return {StatusCode::data_loss, directory + "/CURRENT is missing, but other files of a database are there"};
  }
  std::vector<std::string> names;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory, &names);
  if (!listed.ok()) {
    return {StatusCode::data_loss, directory + ": the manifest cannot be read: " + in_words(listed)};
  }
  const auto known = [](const std::string& name) {
    return std::find(kFamilyNames.begin(), kFamilyNames.end(), name) != kFamilyNames.end();
  };
  const bool complete = names.size() == kFamilyNames.size() && std::all_of(names.begin(), names.end(), known);
  return complete ? Status() : check_unfinished(directory, names);
}

bool is_locked(const rocksdb::Status& status) {
  return status.IsIOError() && status.ToString().find("lock ") != std::string::npos;
}

Status refuse_locked(const std::string& directory, const rocksdb::Status& status) {
  if (is_locked(status)) return refuse(directory, "is in use by another process, which has its file LOCK");
  return refuse(directory, "cannot be locked: " + in_words(status));
}

// All checks before RocksDB opens the directory and changes it. They run under RocksDB's lock, because the files change
// while another process has the directory open.
Status check_before_opening(const std::string& directory, rocksdb::Env* environment) {
  if (Status status = ensure_directory(directory); !status.ok()) return status;
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = environment->LockFile(directory + "/LOCK", &lock);
  if (!locked.ok()) return refuse_locked(directory, locked);
  Status status = check_directory(directory);
  if (status.ok()) status = check_write_ahead_logs(directory);
  environment->UnlockFile(lock);
  return status;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const StorageOptions& options, const std::atomic<bool>* armed) {
  std::unique_ptr<Store> store(new Store);
  store->directory_ = options.data_dir;
  if (Status status = store->open_database(options, armed); !status.ok()) return status;
  return store;
}

Status Store::open_database(const StorageOptions& options, const std::atomic<bool>* armed) {
  rocksdb::DBOptions database = database_options(options);
  if (fail_points_set()) {
    environment_ = make_fault_environment(armed);
    database.env = environment_.get();
  }
  if (Status status = check_before_opening(directory_, database.env); !status.ok()) return status;
  const std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = family_options(options);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(database, directory_, descriptors, &handles, &db);
  if (!opened.ok()) {
    if (is_locked(opened)) return refuse_locked(directory_, opened);
    return status_of(opened, "opening it");
  }
  db_.reset(db);
  std::copy(handles.begin(), handles.end(), families_.begin());
  return {};
}

Store::~Store() {
  if (!db_) return;
  for (rocksdb::ColumnFamilyHandle* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->Close();
}

std::uint64_t Store::property(Family which, const char* name) const {
  std::uint64_t value = 0;
  return db_->GetIntProperty(family(which), name, &value) ? value : 0;
}

Status Store::status_of(const rocksdb::Status& status, const std::string& doing) const {
  if (status.ok()) return {};
  const StatusCode code = status.IsCorruption() ? StatusCode::data_loss : StatusCode::internal;
  return {code, usual_reason(code), "data directory " + directory_ + ", " + doing + ": " + in_words(status)};
}

}  // namespace kilokv::server::storage
