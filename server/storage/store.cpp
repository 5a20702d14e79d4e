#include "server/storage/store.hpp"

#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "server/core/fail_point.hpp"
#include "server/storage/acknowledged_file.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/fault_file_system.hpp"
#include "server/storage/store_options.hpp"
#include "server/storage/system_call.hpp"
#include "server/storage/wal_check.hpp"

namespace kilokv::server::storage {
namespace {

// EMFILE or ENFILE if RocksDB could not open a file because too many are open; else 0. Its status has only the text.
int full_table_of(const rocksdb::Status& status) {
  if (!status.IsIOError()) return 0;
  const std::string text = status.ToString();
  for (const int error : {ENFILE, EMFILE}) {  // the text of the first begins with that of the second
    if (text.find(std::generic_category().message(error)) != std::string::npos) return error;
  }
  return 0;
}

// Says what happened, and then adds RocksDB's own message, which names the file.
std::string in_words(const rocksdb::Status& status) {
  std::string words = "the storage library refused it";
  if (const int error = full_table_of(status); error != 0) {
    words = system_reason(error);
  } else if (status.IsNoSpace()) {
    words = "the disk is full";
  } else if (status.IsCorruption()) {
    words = "a file is damaged";
  } else if (status.IsIOError()) {
    words = "the file system reported an error";
  } else if (status.IsInvalidArgument()) {
    words = "the files do not fit this version of kilokvd";
  }
  return words + " (RocksDB says: " + status.ToString() + ")";
}

// Whether the directory has files of a database, although its CURRENT file is missing.
Result<bool> has_remains(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == kAcknowledgedFileName || name == kWalTagFileName) return true;
    if (name.starts_with("MANIFEST-") || name.ends_with(".sst")) return true;
  }
  if (error) return Status(StatusCode::internal, "cannot list " + directory + ": " + system_reason(error.value()));
  return false;
}

// Checks before anything is written: an existing database must be ours, otherwise it is refused.
Status check_database(const std::string& directory, rocksdb::Env* environment) {
  std::vector<std::string> names;
  rocksdb::DBOptions options;
  options.env = environment;
  const rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, directory, &names);
  if (!listed.ok()) {
    // An error of the file system may pass. A missing file is a loss.
    const bool may_pass = listed.IsIOError() && !listed.IsPathNotFound();
    const StatusCode code = may_pass ? StatusCode::internal : StatusCode::data_loss;
    return {code, usual_reason(code), directory + ": the manifest cannot be read: " + in_words(listed)};
  }
  const auto known = [](const std::string& name) {
    return std::find(kFamilyNames.begin(), kFamilyNames.end(), name) != kFamilyNames.end();
  };
  if (names.size() == kFamilyNames.size() && std::all_of(names.begin(), names.end(), known)) return {};
  if (std::error_code error; std::filesystem::exists(directory + "/" + kAcknowledgedFileName, error)) {
    return {StatusCode::data_loss,
            directory + ": the manifest does not name the parts of a KiloKV database: it is damaged"};
  }
  return refuse_directory(directory, "holds another RocksDB database; choose an empty directory (--data-dir)");
}

// Whether a new database is to be created. Errors: DATA_LOSS: parts of a database are missing.
Result<bool> needs_creation(const DataDirectory& directory) {
  if (directory.creation_began()) return true;
  std::error_code error;
  if (std::filesystem::exists(directory.path() + "/CURRENT", error)) return false;
  const Result<bool> remains = has_remains(directory.path());
  if (!remains.ok()) return remains.status();
  if (!*remains) return true;
  return Status(StatusCode::data_loss,
                directory.path() + "/CURRENT is missing, but other files of a database are there");
}

// For --create never. `lacks`: what the directory lacks.
Status refuse_creation(const std::string& directory, const char* lacks) {
  return refuse_directory(directory,
                          std::string(lacks) +
                              ", and --create never makes none; check --data-dir, or make a new database once "
                              "with kilokvd --create-database");
}

// Whether RocksDB can open the table file, and wrote it under this name. `identity`: of RocksDB's database.
bool is_own_table(const std::filesystem::path& path, const std::string& identity, rocksdb::Env* environment) {
  rocksdb::Options options;
  options.env = environment;
  rocksdb::SstFileReader reader(options);
  if (!reader.Open(path.string()).ok()) return false;
  const std::shared_ptr<const rocksdb::TableProperties> written = reader.GetTableProperties();
  return written->db_id == identity &&
         written->orig_file_number == std::strtoull(path.stem().string().c_str(), nullptr, 10);
}

// RocksDB may have named only the manifest that names the damaged table file. An unfinished table file, which RocksDB
// does not open, is found here, too. Empty: there is no such file.
std::string damaged_table(const std::string& directory, rocksdb::Env* environment) {
  std::string identity;
  std::getline(std::ifstream(directory + "/IDENTITY"), identity);
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::filesystem::path& path = it->path();
    if (path.extension() == ".sst" && !is_own_table(path, identity, environment)) return path.filename().string();
  }
  return {};
}

// RocksDB has found that table files do not fit together, and has just made one of them from a write-ahead log.
std::string logs_to_blame(const std::string& directory) {
  std::string names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".log" || it->file_size(error) == 0) continue;
    names += (names.empty() ? "" : " or ") + it->path().filename().string();
  }
  return names.empty() ? "" : names + " or a table file is of another time, or of another database";
}

// What is wrong with a database that RocksDB did not open, as far as RocksDB has not said it.
std::string damage_of(const std::string& directory, const std::string& said, rocksdb::Env* environment) {
  if (said.find("force_consistency_checks") != std::string::npos) return logs_to_blame(directory);
  if (said.find(".sst") != std::string::npos) return {};
  const std::string table = damaged_table(directory, environment);
  return table.empty() ? "" : table + " is damaged, or another file has its name";
}

bool is_locked(const rocksdb::Status& status) {
  return status.IsIOError() && status.ToString().find("lock ") != std::string::npos;
}

Status refuse_locked(const std::string& directory, const rocksdb::Status& status) {
  if (is_locked(status)) return refuse_directory(directory, "is in use by another process, which has its file LOCK");
  return refuse_directory(directory, "cannot be locked: " + in_words(status));
}

// All checks before RocksDB opens the directory and changes it. They run under RocksDB's lock, because the files change
// while another process has the directory open. Returns whether a creation has begun.
Result<bool> check_before_opening(const DataDirectory& directory, rocksdb::Env* environment) {
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = environment->LockFile(directory.path() + "/LOCK", &lock);
  if (!locked.ok()) return refuse_locked(directory.path(), locked);
  Result<bool> creates = needs_creation(directory);
  Status status = creates.status();
  if (status.ok() && *creates) status = directory.begin_creation();
  if (status.ok() && !*creates) status = check_database(directory.path(), environment);
  if (status.ok() && !*creates) status = check_write_ahead_logs(directory.path());
  if (status.ok() && !*creates) status = remove_empty_write_ahead_logs(directory.path());
  environment->UnlockFile(lock);
  if (!status.ok()) return status;
  return creates;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const StorageOptions& options, const std::atomic<bool>* armed) {
  // A mistyped path must not become a directory, nor get any file.
  std::error_code error;
  if (options.create == "never" && !std::filesystem::exists(options.data_dir, error) && !error) {
    return refuse_creation(options.data_dir, "does not exist");
  }
  Result<std::unique_ptr<DataDirectory>> directory = DataDirectory::open(options.data_dir);
  if (!directory.ok()) return directory.status();
  std::unique_ptr<Store> store(new Store(std::move(*directory)));
  if (Status status = store->check_creation(options); !status.ok()) return status;
  if (Status status = store->check_place(options); !status.ok()) return status;
  if (Status status = store->open_database(options, armed); !status.ok()) return status;
  return store;
}

bool Store::is_there(const std::string& directory) {
  std::error_code error;
  return std::filesystem::exists(directory + "/CURRENT", error) &&
         !std::filesystem::exists(directory + "/" + kCreationFileName, error);
}

Status Store::check_creation(const StorageOptions& options) const {
  if (options.create != "never") return {};
  const Result<bool> creates = needs_creation(*directory_);
  if (!creates.ok() || !*creates) return creates.status();
  return refuse_creation(
      directory(), directory_->creation_began() ? "has a database whose creation did not end" : "has no database");
}

// Before the file LOCK is made. A creation that was killed began in a directory that was fine.
Status Store::check_place(const StorageOptions& options) const {
  if (directory_->creation_began()) return {};
  const Result<bool> creates = needs_creation(*directory_);
  if (!creates.ok() || !*creates) return creates.status();
  return directory_->check_for_others(options.own_files);
}

Status Store::open_database(const StorageOptions& options, const std::atomic<bool>* armed) {
  rocksdb::DBOptions database = database_options(options);
  measure(options);
  files_ = std::make_shared<StoreFileSystem>(
      fail_points_set() ? make_fault_file_system(armed) : rocksdb::FileSystem::Default(), metrics_);
  environment_ = rocksdb::NewCompositeEnv(files_);
  database.env = environment_.get();
  const Result<bool> creates = check_before_opening(*directory_, database.env);
  if (!creates.ok()) return creates.status();
  created_ = *creates;
  if (Status status = directory_->close_to_others(created_, options.on_open_to_others); !status.ok()) return status;
  const std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = family_options(options);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(database, directory(), descriptors, &handles, &db);
  if (!opened.ok()) {
    if (is_locked(opened)) return refuse_locked(directory(), opened);
    const std::string damage =
        opened.IsCorruption() ? damage_of(directory(), opened.ToString(), environment_.get()) : std::string();
    return status_of(opened, damage.empty() ? "opening it" : "opening it (" + damage + ")");
  }
  take(db, handles);
  return created_ ? begin_write_ahead_log() : Status();
}

void Store::measure(const StorageOptions& options) {
  if (options.metrics == nullptr) own_metrics_ = std::make_unique<LogMetrics>();
  metrics_ = options.metrics == nullptr ? own_metrics_.get() : options.metrics;
}

void Store::take(rocksdb::DB* db, const std::vector<rocksdb::ColumnFamilyHandle*>& handles) {
  db_.reset(db);
  std::copy(handles.begin(), handles.end(), families_.begin());
}

Result<std::unique_ptr<Store>> Store::open_to_check(const StorageOptions& options, const OnDamage& found) {
  Result<std::unique_ptr<DataDirectory>> directory = DataDirectory::open_existing(options.data_dir);
  if (!directory.ok()) return directory.status();
  std::unique_ptr<Store> store(new Store(std::move(*directory)));
  if (Status status = store->open_to_read(options, found); !status.ok()) return status;
  store->check_tables(found);
  return store;
}

// RocksDB opens a database to read it without its lock, its log file, and without a change to any file. What is in the
// write-ahead log stays there; RocksDB reads it into its buffers.
Status Store::open_to_read(const StorageOptions& options, const OnDamage& found) {
  if (directory_->creation_began()) return refuse_directory(directory(), "has a database whose creation did not end");
  const Result<bool> is_empty = needs_creation(*directory_);
  if (!is_empty.ok()) return is_empty.status();
  if (*is_empty) return refuse_directory(directory(), "has no database");
  measure(options);
  files_ = std::make_shared<StoreFileSystem>(rocksdb::FileSystem::Default(), metrics_);
  environment_ = rocksdb::NewCompositeEnv(files_);
  if (Status status = check_database(directory(), environment_.get()); !status.ok()) return status;
  if (Status status = check_write_ahead_logs(directory()); status.code() == StatusCode::data_loss) {
    found(status);
  } else if (!status.ok()) {
    return status;
  }
  rocksdb::DBOptions database = database_options(options);
  database.env = environment_.get();
  database.create_if_missing = database.create_missing_column_families = false;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::OpenForReadOnly(database, directory(), family_options(options), &handles, &db);
  if (!opened.ok()) {
    const std::string damage = damage_of(directory(), opened.ToString(), environment_.get());
    return status_of(opened, damage.empty() ? "opening it" : "opening it (" + damage + ")");
  }
  take(db, handles);
  return {};
}

// RocksDB checks a block when it reads it, and a scan ends at the first block that is damaged. So all blocks of all
// table files are checked here, to name each file.
void Store::check_tables(const OnDamage& found) const {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db_->GetLiveFilesMetaData(&tables);
  rocksdb::Options options;
  options.env = environment_.get();
  for (const rocksdb::LiveFileMetaData& table : tables) {
    rocksdb::SstFileReader reader(options);
    rocksdb::Status checked = reader.Open(directory() + table.name);
    if (checked.ok()) checked = reader.VerifyChecksum(rocksdb::ReadOptions());
    if (checked.ok()) continue;
    found(status_of(checked, "table file " + table.name.substr(1) + " of the family " + table.column_family_name));
  }
}

Status Store::end_recovery() {
  files_->end_recovery();
  return created_ ? Status() : begin_write_ahead_log();
}

// Opening has moved everything of the older write-ahead logs into table files, so neither they nor their tag are needed
// any more. To renew the tag also makes their removal durable: no torn one comes back before a later write.
Status Store::begin_write_ahead_log() {
  std::unique_ptr<rocksdb::LogFile> current;
  const rocksdb::Status found = db_->GetCurrentWalFile(&current);
  if (!found.ok()) return status_of(found, "looking for its write-ahead log");
  const std::string name = std::filesystem::path(current->PathName()).filename().string();
  if (Status status = remove_older_write_ahead_logs(directory(), name); !status.ok()) return status;
  const Result<WalTag> tag = renew_wal_tag(directory());
  if (!tag.ok()) return tag.status();
  tag_ = *tag;
  return {};
}

void Store::begin_write(rocksdb::WriteBatch* batch) const {
  batch->Clear();
  const rocksdb::Status put = batch->PutLogData(rocksdb::Slice(tag_.data(), tag_.size()));
  KILOKV_CHECK(put.ok());
}

// If several threads write at once, RocksDB puts their batches one after the other into one write. That write so begins
// with the tag, too.
rocksdb::Status Store::write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) const {
  KILOKV_CHECK(begins_with(batch->Data(), tag_));
  return db_->Write(options, batch);
}

Store::~Store() {
  if (!db_) return;
  for (rocksdb::ColumnFamilyHandle* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->Close();
}

std::uint64_t Store::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t family = 0; family < kFamilyNames.size(); ++family) {
    bytes += property(static_cast<Family>(family), "rocksdb.size-all-mem-tables") +
             property(static_cast<Family>(family), "rocksdb.estimate-table-readers-mem");
  }
  return bytes;
}

std::uint64_t Store::property(Family which, const char* name) const {
  std::uint64_t value = 0;
  return db_->GetIntProperty(family(which), name, &value) ? value : 0;
}

std::uint64_t Store::files_at_level(Family which, int level) const {
  std::string files;
  const bool known = db_->GetProperty(family(which), "rocksdb.num-files-at-level" + std::to_string(level), &files);
  return known ? std::strtoull(files.c_str(), nullptr, 10) : 0;
}

Status Store::status_of(const rocksdb::Status& status, const std::string& doing) const {
  if (status.ok()) return {};
  const StatusCode code = status.IsCorruption() ? StatusCode::data_loss : StatusCode::internal;
  return {code, usual_reason(code), "data directory " + directory() + ", " + doing + ": " + in_words(status)};
}

}  // namespace kilokv::server::storage
