#include "server/storage/store_file_system.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "server/storage/bytes.hpp"
#include "server/storage/last_file_read.hpp"
#include "server/storage/store_options.hpp"

namespace kilokv::server::storage {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

bool holds_data(std::string_view path) {
  return path.ends_with(".sst") || path.ends_with(".log") || path.find("/MANIFEST-") != std::string_view::npos;
}

// The end of a table file: the type of the checksums, two block handles, zeroes, the format version, and a magic
// number. A handle is the offset and the size of a block, as two varints.
constexpr std::size_t kFooterBytes = 53, kHandlesBytes = 40;
constexpr std::uint64_t kTableMagic = 0x88E241B785F4CFF7u;
constexpr std::uint64_t kBlockTrailerBytes = 5;

bool take_varint(std::string_view* bytes, std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    *value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The end of the block that the next handle names, with its trailer. Nothing if it lies after `most`.
std::optional<std::uint64_t> take_end(std::string_view* bytes, std::uint64_t most) {
  std::uint64_t offset = 0, size = 0;
  if (!take_varint(bytes, &offset) || !take_varint(bytes, &size)) return std::nullopt;
  if (offset > most || size > most - offset || kBlockTrailerBytes > most - offset - size) return std::nullopt;
  return offset + size + kBlockTrailerBytes;
}

// Nothing in the file protects the footer. RocksDB would take the size of a block from it, and ask for so much memory.
// The first handle is that of the last block. So bytes that are missing or too many anywhere before it are found, too.
bool footer_is_whole(std::string_view footer, std::uint64_t file_bytes) {
  if (footer.size() != kFooterBytes) return false;
  const auto version = load<std::uint32_t>(footer.data() + 1 + kHandlesBytes);
  const auto magic = load<std::uint64_t>(footer.data() + 1 + kHandlesBytes + sizeof version);
  if (magic != kTableMagic || version != kTableVersion || footer[0] != static_cast<char>(kTableChecksum)) return false;
  std::string_view handles = footer.substr(1, kHandlesBytes);
  const std::uint64_t end = file_bytes - kFooterBytes;
  if (take_end(&handles, end) != end || !take_end(&handles, end)) return false;
  return handles.find_first_not_of('\0') == std::string_view::npos;
}

// A manifest and a log are read to the end before the next one is opened. Table files are read in turn.
class NotedFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  NotedFile(std::unique_ptr<rocksdb::FSRandomAccessFile>&& file, std::string path)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), path_(std::move(path)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* context) const override {
    note_file_read(path_);
    return FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result, scratch, context);
  }

  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* context) override {
    note_file_read(path_);
    return FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, context);
  }

 private:
  const std::string path_;
};

// Measures the syncs.
class MeasuredLogFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  MeasuredLogFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, LogMetrics* metrics)
      : FSWritableFileOwnerWrapper(std::move(file)), metrics_(metrics) {}

  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    const auto begin = std::chrono::steady_clock::now();
    IOStatus status = FSWritableFileOwnerWrapper::Sync(options, context);
    const auto took = std::chrono::steady_clock::now() - begin;
    const auto took_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    if (status.ok()) metrics_->sync.add_time(0, took_us);
    return status;
  }

 private:
  LogMetrics* const metrics_;
};

}  // namespace

void StoreFileSystem::end_recovery() {
  const std::lock_guard lock(mutex_);
  recovers_ = false;
  // RocksDB looks for files that it does not need at each start. So a file that stays is removed then.
  for (const std::string& path : held_) FileSystemWrapper::DeleteFile(path, IOOptions(), nullptr);
  held_.clear();
}

IOStatus StoreFileSystem::NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                            std::unique_ptr<rocksdb::FSSequentialFile>* file, IODebugContext* context) {
  note_file_read(path);
  return FileSystemWrapper::NewSequentialFile(path, options, file, context);
}

IOStatus StoreFileSystem::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* context) {
  IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, context);
  if (status.ok() && path.ends_with(".log")) *file = std::make_unique<MeasuredLogFile>(std::move(*file), metrics_);
  return status;
}

// RocksDB opens only the table files that it needs, and only whole ones.
IOStatus StoreFileSystem::NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                              IODebugContext* context) {
  // RocksDB looks for a missing table file under an older name, too, and would then report that name.
  if (path.ends_with(".ldb"))
    return IOStatus::PathNotFound("the table file is missing", path.substr(0, path.size() - 3) + "sst");
  note_file_read(path);
  IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
  if (!status.ok() || !path.ends_with(".sst")) return status;
  std::uint64_t bytes = 0;
  status = GetFileSize(path, IOOptions(), &bytes, context);
  std::array<char, kFooterBytes> buffer{};
  rocksdb::Slice footer;
  if (status.ok() && bytes >= kFooterBytes) {
    status = (*file)->Read(bytes - kFooterBytes, kFooterBytes, IOOptions(), &footer, buffer.data(), context);
  }
  if (status.ok() && footer_is_whole({footer.data(), footer.size()}, bytes)) {
    *file = std::make_unique<NotedFile>(std::move(*file), path);
    return status;
  }
  file->reset();
  if (!status.ok()) return status;
  return IOStatus::Corruption("the footer of the table file is damaged", path);
}

// A damaged manifest may not name a file, and RocksDB then takes the file for a remainder. The recovery finds the loss
// later, and the file can still be saved by hand. If the recovery does not succeed, RocksDB finds the file again at the
// next start.
IOStatus StoreFileSystem::DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* context) {
  const std::lock_guard lock(mutex_);
  if (!recovers_ || !holds_data(path)) return FileSystemWrapper::DeleteFile(path, options, context);
  held_.push_back(path);
  return IOStatus::OK();
}

}  // namespace kilokv::server::storage
