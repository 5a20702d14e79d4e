#include "server/storage/backup_format.hpp"

#include "engine/base/check.hpp"
#include "server/storage/bytes.hpp"
#include "server/storage/crc32c.hpp"
#include "server/storage/log_record.hpp"

namespace kilokv::server::storage {
namespace {

Status damaged(const std::string& what) { return {StatusCode::data_loss, what}; }

void put_position(const RecoveredPosition& position, std::string* out) {
  put(out, position.batch);
  put(out, position.next_version);
  put(out, position.tombstone_floor);
  put(out, position.time_us);
  put(out, position.state_hash);
}

RecoveredPosition get_position(Reader* reader) {
  RecoveredPosition position;
  position.batch = reader->get<BatchNumber>();
  position.next_version = reader->get<Version>();
  position.tombstone_floor = reader->get<Version>();
  position.time_us = reader->get<TimeUs>();
  position.state_hash = reader->get<Hash128>();
  return position;
}

void put_sized(std::string_view bytes, std::string* out) {
  put(out, static_cast<std::uint32_t>(bytes.size()));
  out->append(bytes);
}

Status check_format(std::uint32_t format, const char* what) {
  if (format == kBackupFormat) return {};
  return {StatusCode::failed_precondition, ErrorReason::failed,
          std::string(what) + " has format " + std::to_string(format) + "; this version reads format " +
              std::to_string(kBackupFormat)};
}

}  // namespace

Status check_payload(std::string_view payload) {
  if (payload.size() <= kFramePayloadMax) return {};
  return {StatusCode::internal, std::to_string(payload.size()) + " bytes are too many for a frame, which has at most " +
                                    std::to_string(kFramePayloadMax)};
}

std::uint32_t encode_frame(FrameKind kind, std::uint64_t index, std::uint32_t previous_crc, std::string_view payload,
                           std::string* out) {
  KILOKV_CHECK(payload.size() <= kFramePayloadMax);
  const std::size_t begin = out->size();
  put(out, kFrameMagic);
  put(out, static_cast<std::uint32_t>(kind));
  put(out, index);
  put(out, previous_crc);
  put(out, static_cast<std::uint32_t>(payload.size()));
  out->append(payload);
  const std::uint32_t crc = crc32c(std::string_view(*out).substr(begin));
  put(out, crc);
  return crc;
}

Result<std::size_t> frame_length(std::string_view bytes) {
  if (bytes.size() < kFrameHeadBytes) return std::size_t{0};
  if (load<std::uint32_t>(bytes.data()) != kFrameMagic) return damaged("no frame of a backup begins here");
  const auto payload = load<std::uint32_t>(bytes.data() + kFrameHeadBytes - sizeof(std::uint32_t));
  if (payload > kFramePayloadMax) return damaged("the length of a frame is beyond its limit");
  return kFrameBytesMin + payload;
}

Result<Frame> decode_frame(std::string_view bytes) {
  const Result<std::size_t> length = frame_length(bytes);
  if (!length.ok()) return length.status();
  if (*length == 0 || *length != bytes.size()) return damaged("a frame is cut short");
  Frame frame;
  frame.crc = load<std::uint32_t>(bytes.data() + bytes.size() - sizeof frame.crc);
  bytes.remove_suffix(sizeof frame.crc);
  if (crc32c(bytes) != frame.crc) return damaged("the checksum of a frame is wrong");
  Reader reader(bytes);
  reader.get<std::uint32_t>();
  const auto kind = reader.get<std::uint32_t>();
  frame.index = reader.get<std::uint64_t>();
  frame.previous_crc = reader.get<std::uint32_t>();
  reader.get<std::uint32_t>();
  frame.payload = reader.rest();
  if (kind < static_cast<std::uint32_t>(FrameKind::header) ||
      kind > static_cast<std::uint32_t>(FrameKind::archive_end)) {
    return Status(StatusCode::failed_precondition, ErrorReason::failed,
                  "a frame has kind " + std::to_string(kind) + ", which this version does not know");
  }
  frame.kind = static_cast<FrameKind>(kind);
  return frame;
}

Status FrameChain::check(const Frame& frame) {
  if (frame.index != next_ || frame.previous_crc != crc_) {
    return damaged("frame " + std::to_string(next_) + " is missing, or is of another backup");
  }
  ++next_;
  crc_ = frame.crc;
  return {};
}

std::string encode_header(const BackupHeader& header) {
  std::string out;
  put(&out, kBackupFormat);
  put(&out, header.id);
  put_sized(encode_identity(header.identity), &out);
  put_sized(encode_incarnation(header.identity.incarnation), &out);
  put_sized(encode_checkpoint(header.checkpoint), &out);
  put_position(header.boundary, &out);
  put(&out, std::uint8_t{header.has_access});
  put_sized(header.access, &out);
  return out;
}

Result<BackupHeader> decode_header(std::string_view payload) {
  Reader reader(payload);
  if (Status status = check_format(reader.get<std::uint32_t>(), "the backup"); !status.ok()) return status;
  BackupHeader header;
  header.id = reader.get<BackupId>();
  Result<DatabaseIdentity> identity = decode_identity(reader.bytes(reader.get<std::uint32_t>()));
  if (!identity.ok()) return identity.status();
  header.identity = *identity;
  Result<Incarnation> incarnation = decode_incarnation(reader.bytes(reader.get<std::uint32_t>()));
  if (!incarnation.ok()) return incarnation.status();
  header.identity.incarnation = *incarnation;
  Result<Checkpoint> checkpoint = decode_checkpoint(reader.bytes(reader.get<std::uint32_t>()));
  if (!checkpoint.ok()) return checkpoint.status();
  header.checkpoint = *checkpoint;
  header.boundary = get_position(&reader);
  header.boundary.checkpoint_batch = header.checkpoint.covers.batch;
  header.has_access = reader.get<std::uint8_t>() != 0;
  header.access = reader.bytes(reader.get<std::uint32_t>());
  if (!reader.finished()) return damaged("the header of the backup is malformed or cut short");
  return header;
}

std::string encode_end(const BackupEnd& end) {
  std::string out;
  put_position(end.position, &out);
  put(&out, end.frames);
  return out;
}

Result<BackupEnd> decode_end(std::string_view payload) {
  Reader reader(payload);
  BackupEnd end;
  end.position = get_position(&reader);
  end.frames = reader.get<std::uint64_t>();
  if (!reader.finished()) return damaged("the last frame is malformed or cut short");
  return end;
}

std::string encode_archive(const ArchiveHeader& header) {
  std::string out;
  put(&out, kBackupFormat);
  put(&out, header.database);
  put(&out, header.incarnation);
  put(&out, header.first_batch);
  put(&out, header.previous_crc);
  return out;
}

Result<ArchiveHeader> decode_archive(std::string_view payload) {
  Reader reader(payload);
  if (Status status = check_format(reader.get<std::uint32_t>(), "the archive"); !status.ok()) return status;
  ArchiveHeader header;
  header.database = reader.get<decltype(ArchiveHeader::database)>();
  header.incarnation = reader.get<decltype(ArchiveHeader::incarnation)>();
  header.first_batch = reader.get<BatchNumber>();
  header.previous_crc = reader.get<std::uint32_t>();
  if (!reader.finished()) return damaged("the header of the archive is malformed or cut short");
  return header;
}

void put_entry(std::string_view key, std::string_view value, std::string* payload) {
  put_sized(key, payload);
  put_sized(value, payload);
}

void put_log_entry(std::string_view record, std::string* payload) { put_sized(record, payload); }

Status each_entry(std::string_view payload, const std::function<Status(std::string_view, std::string_view)>& visit) {
  for (Reader reader(payload); !reader.rest().empty();) {
    const std::string_view key = reader.bytes(reader.get<std::uint32_t>());
    const std::string_view value = reader.bytes(reader.get<std::uint32_t>());
    if (!reader.good()) return damaged("an entry is cut short");
    if (Status status = visit(key, value); !status.ok()) return status;
  }
  return {};
}

Status each_log_entry(std::string_view payload, const std::function<Status(std::string_view)>& visit) {
  for (Reader reader(payload); !reader.rest().empty();) {
    const std::string_view record = reader.bytes(reader.get<std::uint32_t>());
    if (!reader.good()) return damaged("an entry of the log is cut short");
    if (Status status = visit(record); !status.ok()) return status;
  }
  return {};
}

Result<BackupPoint> point_after(const Frame& frame) {
  BackupPoint point{frame.index, frame.crc, static_cast<std::uint8_t>(frame.kind), {}};
  Status status;
  if (frame.kind == FrameKind::state || frame.kind == FrameKind::session) {
    status = each_entry(frame.payload, [&point](std::string_view key, std::string_view) {
      point.key = key;
      return Status();
    });
  } else if (frame.kind == FrameKind::log) {
    status = each_log_entry(frame.payload, [&point](std::string_view bytes) -> Status {
      const Result<RecordView> record = RecordView::parse(bytes);
      if (record.ok()) point.key = ordered_key(record->header().number);
      return record.status();
    });
  }
  if (!status.ok()) return status;
  return point;
}

}  // namespace kilokv::server::storage
