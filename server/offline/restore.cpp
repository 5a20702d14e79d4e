#include "server/offline/restore.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "server/offline/archive_files.hpp"
#include "server/offline/as_of.hpp"
#include "server/offline/check.hpp"
#include "server/offline/frame_file.hpp"
#include "server/offline/loader.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/restore_writer.hpp"

namespace kilokv::server::offline {
namespace {

constexpr Version kVersionGap = Version{1} << 40;

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

Status check_target(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) return {};
  if (std::filesystem::is_directory(directory, error) && std::filesystem::is_empty(directory, error)) return {};
  return refused(directory + " is there already, and is not empty; a restore makes a new directory");
}

// Gives all frames of a file to `take`. An error names the file and the place.
Status each_frame(const std::string& path, const std::function<Status(const storage::Frame&)>& take) {
  FrameFile file(path);
  if (Status status = file.open(); !status.ok()) return status;
  storage::FrameChain chain;
  for (storage::Frame frame;;) {
    const Result<bool> has_more = file.next(&frame);
    if (!has_more.ok()) return has_more.status();
    if (!*has_more) return {};
    Status status = chain.check(frame);
    if (status.ok()) status = take(frame);
    if (status.ok()) continue;
    return {status.code(), status.reason(), path + ", byte " + std::to_string(file.offset()) + ": " + status.message()};
  }
}

// The highest version that a file of the archive names, which nothing else of it is needed for.
Status see_version(const ArchiveFile& file, Version* highest) {
  return each_frame(file.path, [highest](const storage::Frame& frame) -> Status {
    if (frame.kind != storage::FrameKind::archive_end) return {};
    const Result<storage::BackupEnd> end = storage::decode_end(frame.payload);
    if (!end.ok()) return end.status();
    *highest = std::max(*highest, end->position.next_version);
    return {};
  });
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
    Status status = each_frame(options_.backup, [&visit](const storage::Frame& frame) { return visit.take(frame); });
    if (!status.ok()) return status;
    if (!visit.complete()) return Status(StatusCode::data_loss, options_.backup + ": the end is missing");
    Version highest = visit.highest_version();
    if (!options_.archive.empty()) status = read_archive(&visit, &highest);
    if (status.ok()) status = visit.check_until();
    if (!status.ok()) return status;
    if (highest > kVersionMax - kVersionGap) return refused("there are not enough versions left for another restore");
    return (*writer)->finish(visit.position(), highest + kVersionGap);
  }

 private:
  // Whether everything that is wanted was read.
  bool is_reached(const storage::BackupVisit& visit, const ArchiveFile& next) const {
    return options_.batch && *options_.batch < next.first_batch && *options_.batch <= visit.position().batch;
  }
  Status read_archive(storage::BackupVisit* visit, Version* highest) const {
    const Result<std::vector<ArchiveFile>> files =
        archive_files(options_.archive, visit->header().identity.incarnation);
    if (!files.ok()) return files.status();
    BatchNumber last = visit->header().boundary.batch;
    for (const ArchiveFile& file : *files) {
      if (file.last_batch <= last) continue;
      Status status;
      if (is_reached(*visit, file)) {
        status = see_version(file, highest);
      } else if (file.first_batch > last + 1) {
        return refused("the archive lacks the batches " + std::to_string(last + 1) + " to " +
                       std::to_string(file.first_batch - 1) + "; restore to batch " + std::to_string(last) +
                       ", or use a later backup");
      } else {
        status = each_frame(file.path, [visit](const storage::Frame& frame) { return visit->take(frame); });
        *highest = std::max(*highest, visit->highest_version());
      }
      if (!status.ok()) return status;
      last = file.last_batch;
    }
    return {};
  }

  const RestoreOptions& options_;
};

}  // namespace

Result<Summary> restore(const RestoreOptions& options) {
  ::umask(S_IRWXG | S_IRWXO);  // the files of a database are for the owner only
  if (Status status = check_target(options.directory); !status.ok()) return status;
  Partial partial(options.directory + ".partial");
  if (Status status = partial.create(); !status.ok()) return status;
  const Result<Incarnation> incarnation = Restore(options).write(partial.path());
  if (!incarnation.ok()) return incarnation.status();
  std::string damage;
  Result<Summary> checked = check_directory(partial.path(), [&damage](const std::string& found) { damage = found; });
  if (!checked.ok()) return checked.status();
  if (checked->damages > 0) return Status(StatusCode::data_loss, "what was restored is damaged: " + damage);
  checked->incarnation = hex_of(incarnation->id.data(), incarnation->id.size());
  if (Status status = partial.rename_to(options.directory); !status.ok()) return status;
  return checked;
}

}  // namespace kilokv::server::offline
