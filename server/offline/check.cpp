#include "server/offline/check.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "server/core/hex.hpp"
#include "server/offline/assertions.hpp"
#include "server/offline/frame_file.hpp"
#include "server/offline/loader.hpp"
#include "server/storage/acknowledged_file.hpp"
#include "server/storage/backup_visit.hpp"
#include "server/storage/check.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/wal_tag.hpp"

namespace kilokv::server::offline {

namespace {

// Whether it is a directory that nobody would take for a damaged database.
bool has_nothing_of_a_database(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return false;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const char* known :
         {"CURRENT", storage::kAcknowledgedFileName, storage::kWalTagFileName, storage::kCreationFileName}) {
      if (name == known) return false;
    }
    if (name.starts_with("MANIFEST-") || name.ends_with(".sst")) return false;
  }
  return !error;
}

}  // namespace

// The hash is compared only if nothing was damaged: otherwise it differs for sure.
Result<Summary> check_directory(const std::string& path, const TellDamage& tell) {
  if (has_nothing_of_a_database(path)) {
    return Status(StatusCode::invalid_argument,
                  path + " is no data directory and no archive: no file in it is of a database");
  }
  explain_assertions(path);
  StorageOptions options;
  options.data_dir = path;
  Summary summary;
  const auto found = [&](const Status& damage) {
    ++summary.damages;
    tell(damage.message());
  };
  Loader loader;
  const Result<storage::CheckedLog> checked = storage::check_directory(options, loader.visitor(), found);
  Status status = checked.status();
  if (status.ok() && summary.damages == 0) status = loader.finish(checked->position);
  if (status.ok() && summary.damages == 0) {
    loader.fill(checked->position, &summary);
    summary.first_log_batch = checked->first_batch;
  }
  if (status.ok()) return summary;
  if (status.code() != StatusCode::data_loss) return status;
  found(status);
  return summary;
}

namespace {

// Takes all frames of the file. After a damage, only the frames themselves are checked: what they hold does not fit any
// more.
class BackupCheck {
 public:
  BackupCheck(const std::string& path, const TellDamage& tell) : file_(path), tell_(tell) {}

  // Not ok: the backup cannot be checked.
  Status run() {
    if (Status status = file_.open(); !status.ok()) return status;
    if (Status status = file_.check_is_backup(); !status.ok()) return status;
    for (storage::Frame frame;;) {
      const Result<bool> has_more = file_.next(&frame);
      if (!has_more.ok()) {
        if (has_more.status().code() != StatusCode::data_loss) return has_more.status();
        found(has_more.status().message());
        if (!file_.can_go_on()) return {};
        continue;
      }
      if (!*has_more) break;
      if (Status status = take(frame); !status.ok()) return status;
    }
    if (damages_ == 0 && !visit_.complete()) found(file_.path() + ": the end is missing");
    return {};
  }

  std::uint64_t damages() const { return damages_; }
  void found(const std::string& damage) {
    ++damages_;
    tell_(damage);
  }
  Loader& loader() { return loader_; }
  const storage::BackupVisit& visit() const { return visit_; }

 private:
  Status take(const storage::Frame& frame) {
    if (damages_ > 0) return {};
    Status status =
        visit_.complete() ? Status(StatusCode::data_loss, "there is more after the end") : chain_.check(frame);
    if (status.ok()) status = visit_.take(frame);
    if (status.ok()) return {};
    if (status.code() != StatusCode::data_loss) return status;
    found(file_.path() + ", byte " + std::to_string(file_.offset()) + ": " + status.message());
    return {};
  }

  FrameFile file_;
  const TellDamage& tell_;
  std::uint64_t damages_ = 0;
  storage::FrameChain chain_;
  Loader loader_;
  storage::VisitorTarget target_{loader_.visitor()};
  storage::BackupVisit visit_{&target_};
};

}  // namespace

Result<Summary> check_backup(const std::string& path, const TellDamage& tell) {
  BackupCheck check(path, tell);
  if (Status status = check.run(); !status.ok()) return status;
  Summary summary;
  if (check.damages() == 0) {
    const Status status = check.loader().finish(check.visit().position());
    if (status.ok()) {
      check.loader().fill(check.visit().position(), &summary);
      const auto& incarnation = check.visit().header().identity.incarnation.id;
      summary.incarnation = hex_of(incarnation);
    } else if (status.code() == StatusCode::data_loss) {
      check.found(path + ": " + status.message());
    } else {
      return status;
    }
  }
  summary.damages = check.damages();
  return summary;
}

}  // namespace kilokv::server::offline
