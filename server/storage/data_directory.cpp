#include "server/storage/data_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/core/one_line.hpp"
#include "server/storage/acknowledged_file.hpp"
#include "server/storage/system_call.hpp"
#include "server/storage/wal_tag.hpp"

namespace kilokv::server::storage {
namespace {

constexpr mode_t kOwnerOnly = S_IRWXU;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
constexpr mode_t kModeBits = 07777;  // without the type of the file

// For an error of this directory. Too many open files are no fault of the directory.
std::string reason_with_setting(int error) {
  return error == EMFILE || error == ENFILE ? system_reason(error) : system_reason(error) + " (--data-dir)";
}

std::string parent_of(const std::string& directory) {
  const std::filesystem::path parent = (std::filesystem::path(directory) / "").parent_path().parent_path();
  return parent.empty() ? "." : parent.string();
}

Status ensure_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), kOwnerOnly) == 0) {
    return sync_directory(parent_of(directory));
  }
  if (errno == EEXIST) return {};
  if (errno == ENOENT) {
    return refuse_directory(directory, "cannot be created: its parent " + parent_of(directory) +
                                           " does not exist; make it first (--data-dir)");
  }
  return refuse_directory(directory, "cannot be created: " + reason_with_setting(errno));
}

// Calls `visit` with the path of every regular file in the directory.
template <class Visit>
Status for_each_file(const std::string& directory, const Visit& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (std::error_code ignored; it->is_regular_file(ignored) && !it->is_symlink(ignored)) visit(it->path());
  }
  if (error) return {StatusCode::internal, "cannot list " + directory + ": " + system_reason(error.value())};
  return {};
}

bool is_closed_to_others(const std::string& path, bool changes) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) return errno == ENOENT;  // RocksDB may remove a file meanwhile
  if ((found.st_mode & kOthers) == 0) return true;
  return changes && ::chmod(path.c_str(), found.st_mode & ~kOthers & kModeBits) == 0;
}

// The names of RocksDB's files, and of the two small files beside them. LOCK is none of them: it is in use.
bool belongs_to_a_database(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  constexpr std::array<std::string_view, 5> kNames = {"CURRENT", "IDENTITY", "LOG", kAcknowledgedFileName,
                                                      kWalTagFileName};
  for (const std::string_view known : kNames) {
    if (name == known) return true;
  }
  constexpr std::array<std::string_view, 3> kPrefixes = {"MANIFEST-", "OPTIONS-", "LOG.old."};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  const bool numbered = path.stem().string().find_first_not_of("0123456789") == std::string::npos;
  return numbered && (path.extension() == ".log" || path.extension() == ".dbtmp");
}

}  // namespace

Status refuse_directory(const std::string& directory, const std::string& why) {
  return {StatusCode::failed_precondition, ErrorReason::failed, "data directory " + directory + " " + why};
}

Status sync_directory(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return {StatusCode::internal, "cannot open " + directory + ": " + system_reason(errno)};
  const bool synced = ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  if (synced) return {};
  return {StatusCode::internal, "cannot sync " + directory + ": " + system_reason(error)};
}

bool lies_in(const std::string& path, const std::string& directory) {
  if (path.empty()) return false;
  std::error_code error;
  const std::filesystem::path inner = std::filesystem::weakly_canonical(path + "/", error),
                              outer = std::filesystem::weakly_canonical(directory + "/", error);
  const std::filesystem::path relative = inner.lexically_relative(outer);
  return !error && !relative.empty() && *relative.begin() != "..";
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::open(const std::string& path) {
  if (Status status = ensure_directory(path); !status.ok()) return status;
  Result<std::unique_ptr<DataDirectory>> directory = open_existing(path);
  // Otherwise RocksDB would be the first to notice, and would speak of one of its files.
  if (directory.ok() && ::faccessat((*directory)->descriptor_, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return refuse_directory(path, "cannot be written: " + system_reason(errno) +
                                      "; let the user of this program write there, or choose another (--data-dir)");
  }
  return directory;
}

Result<std::unique_ptr<DataDirectory>> DataDirectory::open_existing(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return refuse_directory(path, "cannot be opened: " + reason_with_setting(errno));
  std::unique_ptr<DataDirectory> directory(new DataDirectory(path, descriptor));
  if (Status status = directory->lock(); !status.ok()) return status;
  return directory;
}

Status DataDirectory::close_to_others(bool creates,
                                      const std::function<void(const std::string&)>& open_to_others) const {
  bool is_shared = false;
  const auto close = [&](const std::string& path, bool changes) {
    if (!is_closed_to_others(path, changes) && open_to_others) open_to_others(path);
  };
  Status status = for_each_file(path_, [&](const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    const bool is_ours =
        belongs_to_a_database(path) || path.extension() == ".sst" || name == "LOCK" || name == kCreationFileName;
    if (is_ours) close(path.string(), true);
    is_shared = is_shared || !is_ours;
  });
  close(path_, !(creates && is_shared));
  return status;
}

DataDirectory::~DataDirectory() { ::close(descriptor_); }

Status DataDirectory::lock() {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return refuse_directory(path_, "is in use by another process, which has locked it");
    return refuse_directory(
        path_, "cannot be locked: " + system_reason(errno) + "; choose a file system that can lock a directory");
  }
  struct stat found = {};
  if (::fstat(descriptor_, &found) != 0) return refuse_directory(path_, "cannot be read: " + system_reason(errno));
  // The owner of the directory could put another database there, or give others rights to it again.
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    return refuse_directory(path_, "belongs to another user (id " + std::to_string(found.st_uid) +
                                       "); run this program as that user, or choose another directory");
  }
  device_ = found.st_dev;
  inode_ = found.st_ino;
  return {};
}

Status DataDirectory::check_in_place() const {
  struct stat found = {};
  if (::stat(path_.c_str(), &found) != 0) {
    return {StatusCode::internal,
            "data directory " + path_ + " was taken away while it was in use: " + system_reason(errno)};
  }
  if (found.st_dev == device_ && found.st_ino == inode_) return {};
  return {StatusCode::internal, "data directory " + path_ + " was replaced by another directory while it was in use"};
}

Status DataDirectory::check_for_others(const std::vector<std::string>& own_files) const {
  std::string other;  // the first by name, so that the error is always the same
  std::error_code error;
  for (std::filesystem::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const auto is_here = [&](const std::string& own) { return lies_in(own, it->path().string()); };
    if (name == "LOCK" || name == "lost+found" || std::any_of(own_files.begin(), own_files.end(), is_here)) continue;
    if (other.empty() || name < other) other = name;
  }
  if (error) return {StatusCode::internal, "cannot list " + path_ + ": " + system_reason(error.value())};
  if (other.empty()) return {};
  return refuse_directory(path_, "has no database, but it has other files, such as \"" + one_line(other) +
                                     "\": a new database is made only in an empty or a new directory (--data-dir)");
}

bool DataDirectory::creation_began() const {
  std::error_code error;
  return std::filesystem::exists(path_ + "/" + kCreationFileName, error);
}

Status DataDirectory::begin_creation() const {
  if (creation_began()) {
    if (Status status = remove_remains(); !status.ok()) return status;
  }
  const std::string path = path_ + "/" + kCreationFileName;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return {StatusCode::internal, "cannot create " + path + ": " + system_reason(errno)};
  ::close(file);
  if (Status status = sync_directory(path_); !status.ok()) return status;
  return sync_own_entry();
}

// An earlier start may have been killed after it created the directory and before it synced the parent. A mount point
// was not created by us. A parent that we may not read cannot be synced.
Status DataDirectory::sync_own_entry() const {
  const int parent = ::openat(descriptor_, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0 && (errno == EACCES || errno == EPERM)) return {};
  if (parent < 0) return {StatusCode::internal, "cannot open the parent of " + path_ + ": " + system_reason(errno)};
  struct stat found = {};
  const bool is_mount_point = ::fstat(parent, &found) == 0 && found.st_dev != device_;
  const bool synced = is_mount_point || ::fsync(parent) == 0;
  const int error = errno;
  ::close(parent);
  if (synced) return {};
  return {StatusCode::internal, "cannot sync the parent of " + path_ + ": " + system_reason(error)};
}

Status DataDirectory::remove_remains() const {
  std::string data, stuck;
  Status listed = for_each_file(path_, [&](const std::filesystem::path& path) {
    if (path.extension() == ".sst") data = path.string();
    if (path.filename() == kAcknowledgedFileName && !AcknowledgedFile::is_of_a_new_database(path.string())) {
      data = path.string();
    }
  });
  if (!listed.ok()) return listed;
  if (!data.empty()) {
    return {StatusCode::data_loss, data + " is there, but also " + kCreationFileName +
                                       ", which stands for a database whose creation did not end. If the database is "
                                       "known to be whole, remove " +
                                       path_ + "/" + kCreationFileName + " and start again"};
  }
  Status status = for_each_file(path_, [&](const std::filesystem::path& path) {
    if (belongs_to_a_database(path) && ::unlink(path.c_str()) != 0) stuck = path.string() + ": " + system_reason(errno);
  });
  if (status.ok() && !stuck.empty()) status = {StatusCode::internal, "cannot remove " + stuck};
  return status;
}

Status DataDirectory::end_creation() const {
  const std::string path = path_ + "/" + kCreationFileName;
  if (::unlink(path.c_str()) != 0) return {StatusCode::internal, "cannot remove " + path + ": " + system_reason(errno)};
  return sync_directory(path_);
}

}  // namespace kilokv::server::storage
