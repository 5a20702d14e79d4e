#include "server/offline/restore.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "server/core/hex.hpp"
#include "server/offline/archive_files.hpp"
#include "server/offline/as_of.hpp"
#include "server/offline/check.hpp"
#include "server/offline/frame_file.hpp"
#include "server/offline/loader.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/restore_writer.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::offline {
namespace {

// Between the highest version that is known, and the first one of the new incarnation. Clients may have seen versions
// that are in no file. A second restore from the same backup must not give the versions of the first one again, and it
// does not know of it. So most of the gap is random.
constexpr Version kVersionGapMin = Version{1} << 40, kVersionGapRandom = Version{1} << 44;
// Where a part of the archive could not be read.
constexpr Version kVersionGapUnknown = Version{1} << 45;

Status refused(const std::string& why) { return {StatusCode::failed_precondition, ErrorReason::failed, why}; }

// The partial directory of this run. If the restore fails, it is removed.
class Partial {
 public:
  explicit Partial(std::string path) : path_(std::move(path)) {}
  ~Partial() {
    std::error_code ignored;
    if (is_ours_) std::filesystem::remove_all(path_, ignored);
  }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

  Status create() {
    std::error_code error;
    if (std::filesystem::exists(path_, error)) {
      return refused(path_ + " is there already: another restore makes it, or has left it; if none runs, remove it");
    }
    if (!std::filesystem::create_directory(path_, error))
      return refused("cannot create " + path_ + ": " + error.message());
    is_ours_ = true;
    return {};
  }
  Status rename_to(const std::string& path) {
    if (std::rename(path_.c_str(), path.c_str()) != 0) {
      return refused("cannot rename " + path_ + " to " + path + ": " + std::generic_category().message(errno));
    }
    is_ours_ = false;
    const std::string parent = std::filesystem::path(path).parent_path().string();
    return storage::sync_directory(parent.empty() ? "." : parent);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  bool is_ours_ = false;
};

// Without slashes at its end: the partial directory is beside it.
std::string without_end(const std::string& path) {
  std::filesystem::path whole(path);
  while (whole.has_relative_path() && (!whole.has_filename() || whole.filename() == ".")) whole = whole.parent_path();
  return whole.string();
}

// Whether the directory is one of its own in its parent, so that another one can be renamed to it.
bool can_be_replaced(const std::filesystem::path& directory) {
  struct stat found = {}, above = {};
  const std::string parent = directory.parent_path().string();
  return ::lstat(directory.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         ::stat(parent.empty() ? "." : parent.c_str(), &above) == 0 && found.st_dev == above.st_dev;
}

Status check_target(const std::string& directory) {
  std::error_code error;
  const std::string name = std::filesystem::path(directory).filename().string();
  if (name.empty() || name == "." || name == "..") return refused("name the new directory itself, not its parent");
  if (!std::filesystem::exists(directory, error)) return {};
  if (std::filesystem::is_directory(directory, error) && std::filesystem::is_empty(directory, error)) {
    if (can_be_replaced(directory)) return {};
    return refused(directory + " is a link or a mounted file system; give the name of a new directory in it");
  }
  return refused(directory + " is there already, and is not empty; a restore makes a new directory");
}

// Gives the frames of an open file to `take`, until `is_enough` or the end. An error names the file and the place.
Status each_frame(
    FrameFile* file, const std::function<Status(const storage::Frame&)>& take,
    const std::function<bool()>& is_enough = [] { return false; }) {
  storage::FrameChain chain;
  for (storage::Frame frame; !is_enough();) {
    const Result<bool> has_more = file->next(&frame);
    if (!has_more.ok()) return has_more.status();
    if (!*has_more) return {};
    Status status = chain.check(frame);
    if (status.ok()) status = take(frame);
    if (status.ok()) continue;
    return {status.code(), status.reason(),
            file->path() + ", byte " + std::to_string(file->offset()) + ": " + status.message()};
  }
  return {};
}

// What the first frame of a file of the archive says.
Result<storage::ArchiveHeader> header_of(const std::string& path) {
  FrameFile file(path);
  if (Status status = file.open(); !status.ok()) return status;
  storage::Frame frame;
  const Result<bool> has_frame = file.next(&frame);
  if (!has_frame.ok()) return has_frame.status();
  if (*has_frame && frame.kind == storage::FrameKind::archive) return storage::decode_archive(frame.payload);
  return Status(StatusCode::data_loss, path + ": the header is missing");
}

// The next version after a file of the archive. Only its last frame is read.
Result<Version> version_after(const std::string& path) {
  std::string bytes(storage::kFrameBytesMin + storage::encode_end({}).size(), 0);
  std::ifstream file(path, std::ios::binary);
  file.seekg(-static_cast<std::streamoff>(bytes.size()), std::ios::end);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file) return Status(StatusCode::data_loss, path + ": the end cannot be read");
  const Result<storage::Frame> frame = storage::decode_frame(bytes);
  if (!frame.ok() || frame->kind != storage::FrameKind::archive_end) {
    return Status(StatusCode::data_loss, path + ": the end is damaged");
  }
  const Result<storage::BackupEnd> end = storage::decode_end(frame->payload);
  if (!end.ok()) return end.status();
  return end->position.next_version;
}

class Restore {
 public:
  explicit Restore(const RestoreOptions& options) : options_(options) {}

  Result<Incarnation> write(const std::string& directory) {
    Result<std::unique_ptr<storage::RestoreWriter>> writer = storage::RestoreWriter::create(directory);
    if (!writer.ok()) return writer.status();
    const storage::BackupUntil until{options_.batch, options_.time_us};
    AsOf target(until, writer->get());
    storage::BackupVisit visit(&target, until);
    FrameFile backup(options_.backup);
    Status status = backup.open();
    if (status.ok()) status = backup.check_is_backup();
    if (status.ok()) status = each_frame(&backup, [&visit](const storage::Frame& frame) { return visit.take(frame); });
    if (!status.ok()) return status;
    if (!visit.complete()) return Status(StatusCode::data_loss, options_.backup + ": the end is missing");
    if (!options_.archive.empty()) status = read_archive(&visit);
    if (status.ok()) status = visit.check_until();
    if (!status.ok()) return status;
    highest_of_backup_ = visit.highest_version();
    see_version(highest_of_backup_);
    if (!options_.archive.empty()) see_versions(visit.header().identity);
    const Result<Version> first = first_version();
    if (!first.ok()) return first.status();
    return (*writer)->finish(visit.position(), *first);
  }

 private:
  // Reads on from the backup, until everything that is wanted was read. What comes later may be damaged, or missing.
  Status read_archive(storage::BackupVisit* visit) const {
    if (visit->is_enough()) return {};
    const Result<std::vector<ArchiveFile>> files =
        archive_files(options_.archive, visit->header().identity.incarnation);
    if (!files.ok()) return files.status();
    BatchNumber last = visit->header().boundary.batch;
    for (const ArchiveFile& file : *files) {
      if (file.last_batch <= last) continue;
      if (visit->is_enough()) return {};
      if (file.first_batch > last + 1) {
        return refused("the archive lacks the batches " + std::to_string(last + 1) + " to " +
                       std::to_string(file.first_batch - 1) + "; restore to batch " + std::to_string(last) +
                       ", or use a later backup");
      }
      FrameFile frames(file.path);
      if (Status status = frames.open(); !status.ok()) return status;
      Status status = each_frame(
          &frames, [visit](const storage::Frame& frame) { return visit->take(frame); },
          [visit] { return visit->is_enough(); });
      if (!status.ok()) return status;
      // A file that was cut after a frame would pass for a shorter one.
      if (!visit->is_enough() && !visit->archive_ended_at(file.last_batch)) {
        return Status(StatusCode::data_loss, file.path + ": the end is missing, after which batch " +
                                                 std::to_string(file.last_batch) + " would be there");
      }
      last = file.last_batch;
    }
    return {};
  }

  void see_version(Version version) { highest_ = std::max(highest_, version); }
  // All incarnations of the database, also those that earlier restores from this backup have begun.
  void see_versions(const DatabaseIdentity& identity) {
    for (const std::string& folder : archive_folders(options_.archive)) {
      if (const Status status = see_folder(folder, identity); !status.ok()) {
        is_unknown_ = true;
        if (options_.warn)
          options_.warn(status.message() + "; the versions of the new incarnation begin higher for it");
      }
    }
  }
  Status see_folder(const std::string& folder, const DatabaseIdentity& identity) {
    const Result<std::vector<ArchiveFile>> files = archive_files_in(folder);
    if (!files.ok()) return files.status();
    if (files->empty()) return {};
    const auto last = std::max_element(files->begin(), files->end(), [](const ArchiveFile& a, const ArchiveFile& b) {
      return a.last_batch < b.last_batch;
    });
    const Result<storage::ArchiveHeader> header = header_of(last->path);
    if (!header.ok()) return header.status();
    if (header->database != identity.id) return {};
    const Result<Version> version = version_after(last->path);
    if (!version.ok()) return version.status();
    const bool is_later = header->incarnation != identity.incarnation.id && *version > highest_of_backup_;
    if (is_later && options_.warn) {
      options_.warn(folder +
                    " has batches of a later incarnation of this database, which this restore does not have; they need "
                    "a backup of it");
    }
    see_version(*version);
    return {};
  }
  Result<Version> first_version() const {
    std::array<unsigned char, sizeof(Version)> bytes;
    if (Status status = storage::fill_with_random(&bytes); !status.ok()) return status;
    Version random = 0;
    std::memcpy(&random, bytes.data(), sizeof random);
    const Version gap = (is_unknown_ ? kVersionGapUnknown : kVersionGapMin) + random % kVersionGapRandom;
    if (highest_ > kVersionMax - gap) return refused("there are not enough versions left for another restore");
    return highest_ + gap;
  }

  const RestoreOptions& options_;
  Version highest_ = 0;  // that is named anywhere
  Version highest_of_backup_ = 0;
  bool is_unknown_ = false;  // a place that may name a higher one could not be read
};

}  // namespace

Result<Summary> restore(const RestoreOptions& options) {
  ::umask(S_IRWXG | S_IRWXO);  // the files of a database are for the owner only
  const std::string directory = without_end(options.directory);
  if (Status status = check_target(directory); !status.ok()) return status;
  Partial partial(directory + ".partial");
  if (Status status = partial.create(); !status.ok()) return status;
  const Result<Incarnation> incarnation = Restore(options).write(partial.path());
  if (!incarnation.ok()) return incarnation.status();
  std::string damage;
  Result<Summary> checked = check_directory(partial.path(), [&damage](const std::string& found) { damage = found; });
  if (!checked.ok()) return checked.status();
  if (checked->damages > 0) return Status(StatusCode::data_loss, "what was restored is damaged: " + damage);
  checked->incarnation = hex_of(incarnation->id);
  if (Status status = partial.rename_to(directory); !status.ok()) return status;
  return checked;
}

}  // namespace kilokv::server::offline
