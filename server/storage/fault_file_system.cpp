#include "server/storage/fault_file_system.hpp"

#include <string>
#include <utility>

#include "server/core/fail_point.hpp"

namespace kilokv::server::storage {
namespace {

using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class FaultLogFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultLogFile(std::unique_ptr<FSWritableFile>&& file, const std::atomic<bool>* armed)
      : FSWritableFileOwnerWrapper(std::move(file)), armed_(armed) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, IODebugContext* context) override {
    if (!armed()) return FSWritableFileOwnerWrapper::Append(data, options, context);
    const rocksdb::Slice half(data.data(), data.size() / 2);
    const rocksdb::Slice rest(data.data() + half.size(), data.size() - half.size());
    IOStatus status = FSWritableFileOwnerWrapper::Append(half, options, context);
    if (!status.ok()) return status;
    if (fail_point("storage.append.write")) return IOStatus::IOError("fail point storage.append.write");
    return FSWritableFileOwnerWrapper::Append(rest, options, context);
  }

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }

  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    if (!armed()) return FSWritableFileOwnerWrapper::Sync(options, context);
    fail_point("storage.append.before_sync");
    if (fail_point("storage.append.sync")) return IOStatus::IOError("fail point storage.append.sync");
    if (fail_point("storage.append.skip_sync")) return IOStatus::OK();
    IOStatus status = FSWritableFileOwnerWrapper::Sync(options, context);
    fail_point("storage.append.after_sync");
    return status;
  }

 private:
  bool armed() const { return armed_->load(std::memory_order_relaxed); }

  const std::atomic<bool>* armed_;
};

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultFileSystem(const std::atomic<bool>* armed)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), armed_(armed) {}

  const char* Name() const override { return "FaultFileSystem"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<FSWritableFile>* file, IODebugContext* context) override {
    IOStatus status = FileSystemWrapper::NewWritableFile(name, options, file, context);
    if (status.ok() && name.ends_with(".log")) *file = std::make_unique<FaultLogFile>(std::move(*file), armed_);
    return status;
  }

 private:
  const std::atomic<bool>* armed_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> make_fault_file_system(const std::atomic<bool>* armed) {
  return std::make_shared<FaultFileSystem>(armed);
}

}  // namespace kilokv::server::storage
