#include "server/offline/archive_check.hpp"

#include <algorithm>
#include <utility>

#include "server/offline/archive_files.hpp"
#include "server/offline/frame_file.hpp"
#include "server/offline/loader.hpp"
#include "server/storage/backup_format.hpp"
#include "server/storage/log_record.hpp"

namespace kilokv::server::offline {
namespace {

using storage::Frame;
using storage::FrameKind;

std::string text_of(BatchNumber batch) { return "batch " + std::to_string(batch); }

Status lost(const std::string& what) { return {StatusCode::data_loss, what}; }

// The records of the files of one incarnation, one after the other.
class ArchiveCheck {
 public:
  explicit ArchiveCheck(const TellDamage& tell) : tell_(tell) {}

  // Takes the next file. Not ok: it cannot be read. After a damage, only the frames themselves are still checked.
  Status take(const ArchiveFile& file) {
    FrameFile frames(file.path);
    if (Status status = frames.open(); !status.ok()) return status;
    if (last_batch_ != 0 && file.first_batch > last_batch_ + 1) {
      found(file.path + ": the archive lacks the batches " + std::to_string(last_batch_ + 1) + " to " +
            std::to_string(file.first_batch - 1) + "; no restore goes over this gap");
    }
    begin_file(file);
    for (Frame frame;;) {
      const Result<bool> has_more = frames.next(&frame);
      Status status = has_more.status();
      if (status.ok() && !*has_more) break;
      if (status.ok()) status = is_damaged_ ? Status() : placed(take(frame), file.path, frames.offset());
      if (status.ok()) continue;
      if (status.code() != StatusCode::data_loss) return status;
      is_damaged_ = true;
      found(status.message());
      if (!frames.can_go_on()) break;
    }
    if (!is_damaged_ && !has_ended_) found(file.path + ": the end is missing");
    end_file();
    return {};
  }

  std::uint64_t damages() const { return damages_; }
  const RecoveredPosition& position() const { return last_position_; }

 private:
  // It follows the file before it if that one was whole, and ended where this one begins.
  void begin_file(const ArchiveFile& file) {
    follows_ = last_is_whole_ && file.first_batch == last_batch_ + 1;
    file_first_ = file.first_batch;
    file_last_ = file.last_batch;
    chain_ = {};
    crc_ = last_crc_;
    is_damaged_ = has_ended_ = false;
  }
  // A file that repeats batches, and ends before another one, is checked for itself alone.
  void end_file() {
    if (file_last_ <= last_batch_) return;
    last_batch_ = file_last_;
    last_is_whole_ = !is_damaged_ && has_ended_;
    last_crc_ = crc_;
    last_position_ = position_;
  }
  static Status placed(const Status& status, const std::string& path, std::uint64_t offset) {
    if (status.ok()) return status;
    return {status.code(), status.reason(), path + ", byte " + std::to_string(offset) + ": " + status.message()};
  }
  Status take(const Frame& frame) {
    if (has_ended_) return lost("there is more after the end");
    const bool is_first = chain_.frames() == 0;
    if (Status status = chain_.check(frame); !status.ok()) return status;
    if (is_first != (frame.kind == FrameKind::archive)) return lost("the header is not the first frame");
    switch (frame.kind) {
      case FrameKind::archive: return take_header(frame);
      case FrameKind::log:
        return storage::each_log_entry(frame.payload, [this](std::string_view bytes) { return take_record(bytes); });
      case FrameKind::archive_end: return take_end(frame);
      case FrameKind::header:
      case FrameKind::state:
      case FrameKind::session:
      case FrameKind::end: break;
    }
    return lost("a frame of a backup is in the archive");
  }
  Status take_header(const Frame& frame) {
    const Result<storage::ArchiveHeader> header = storage::decode_archive(frame.payload);
    if (!header.ok()) return header.status();
    if (header->first_batch != file_first_) {
      return lost("the file begins with " + text_of(header->first_batch) + ", and its name says " +
                  text_of(file_first_));
    }
    if (follows_ && header->previous_crc != crc_) return lost("the file does not follow the file before it");
    crc_ = header->previous_crc;
    next_ = header->first_batch;
    return {};
  }
  Status take_record(std::string_view bytes) {
    const Result<storage::RecordView> record = storage::RecordView::parse(bytes);
    if (!record.ok()) return record.status();
    const BatchNumber batch = record->header().number;
    if (batch != next_) return lost(text_of(next_) + " is missing, " + text_of(batch) + " follows");
    if (record->previous_crc() != crc_) return lost(text_of(batch) + " does not follow the record before it");
    crc_ = record->crc();
    ++next_;
    position_ = {.batch = batch,
                 .next_version = record->next_version(),
                 .tombstone_floor = record->tombstone_floor(),
                 .time_us = record->header().time_us,
                 .state_hash = record->state_hash()};
    return {};
  }
  Status take_end(const Frame& frame) {
    const Result<storage::BackupEnd> end = storage::decode_end(frame.payload);
    if (!end.ok()) return end.status();
    has_ended_ = true;
    const bool fits = end->frames == frame.index + 1 && end->position.batch == position_.batch &&
                      end->position.state_hash == position_.state_hash && position_.batch == file_last_;
    if (fits) return {};
    return lost("the file ends with " + text_of(position_.batch) + ", and should end with " + text_of(file_last_));
  }
  void found(const std::string& damage) {
    ++damages_;
    tell_(damage);
  }

  const TellDamage& tell_;
  std::uint64_t damages_ = 0;
  storage::FrameChain chain_;
  BatchNumber file_first_ = 0, file_last_ = 0;  // of the file, by its name
  BatchNumber next_ = 0;
  bool is_damaged_ = false, has_ended_ = false;  // the file
  bool follows_ = false;                         // its first record must follow the last one of the file before
  std::uint32_t crc_ = 0;                        // of the record before
  RecoveredPosition position_;                   // after it
  // Of the file with the highest last batch.
  BatchNumber last_batch_ = 0;
  bool last_is_whole_ = false;
  std::uint32_t last_crc_ = 0;
  RecoveredPosition last_position_;
};

Result<Summary> check_folder(const std::string& folder, const TellDamage& tell) {
  const Result<std::vector<ArchiveFile>> files = archive_files_in(folder);
  if (!files.ok()) return files.status();
  ArchiveCheck check(tell);
  for (const ArchiveFile& file : *files) {
    if (Status status = check.take(file); !status.ok()) return status;
  }
  Summary summary;
  fill_position(check.position(), &summary);
  summary.incarnation = last_name(folder);
  summary.is_archive = true;
  if (!files->empty()) summary.first_log_batch = files->front().first_batch;
  summary.files = files->size();
  summary.damages = check.damages();
  return summary;
}

}  // namespace

bool is_archive(const std::string& directory) { return !archive_folders(directory).empty(); }

Result<std::vector<Summary>> check_archive(const std::string& path, const TellDamage& tell) {
  std::vector<Summary> all;
  for (const std::string& folder : archive_folders(path)) {
    Result<Summary> summary = check_folder(folder, tell);
    if (!summary.ok()) return summary.status();
    all.push_back(std::move(*summary));
  }
  return all;
}

}  // namespace kilokv::server::offline
