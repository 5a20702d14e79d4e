#include "server/storage/acknowledged_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "server/storage/bytes.hpp"
#include "server/storage/crc32c.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::uint32_t kMagic = 0x4B434141;  // "AACK"

struct Content {
  std::uint32_t magic = kMagic;
  std::uint32_t crc = 0;  // of the batch
  BatchNumber batch = 0;
};

std::uint32_t crc_of(BatchNumber batch) {
  std::string bytes;
  put(&bytes, batch);
  return crc32c(bytes);
}

Status malformed(const std::string& path) {
  return {StatusCode::data_loss, path +
                                     " is malformed; it says how far the log was acknowledged. If the log "
                                     "is known to be whole, remove the file and start again"};
}

bool is_whole(ssize_t got, const Content& content) {
  return got == sizeof content && content.magic == kMagic && content.crc == crc_of(content.batch);
}

}  // namespace

AcknowledgedFile::~AcknowledgedFile() {
  if (file_ >= 0) ::close(file_);
}

Result<BatchNumber> AcknowledgedFile::open(const std::string& directory) {
  const std::string path = directory + "/" + kAcknowledgedFileName;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ < 0) return system_failure("cannot open " + path);
  Content content;
  const ssize_t got = ::pread(file_, &content, sizeof content, 0);
  if (got < 0) return system_failure("cannot read " + path);
  if (got == 0) {
    if (Status status = write(0); !status.ok()) return status;
    if (::fsync(file_) != 0) return system_failure("cannot sync " + path);
    if (Status status = sync_directory(directory); !status.ok()) return status;
    return BatchNumber{0};
  }
  if (got != sizeof content || content.magic != kMagic || content.crc != crc_of(content.batch)) {
    return malformed(path);
  }
  return content.batch;
}

Result<BatchNumber> AcknowledgedFile::read(const std::string& directory) {
  const std::string path = directory + "/" + kAcknowledgedFileName;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0 && errno == ENOENT) return BatchNumber{0};
  if (file < 0) return system_failure("cannot open " + path);
  Content content;
  const ssize_t got = ::pread(file, &content, sizeof content, 0);
  ::close(file);
  if (got == 0) return BatchNumber{0};
  if (!is_whole(got, content)) return malformed(path);
  return content.batch;
}

bool AcknowledgedFile::is_of_a_new_database(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  Content content;
  const ssize_t got = ::pread(file, &content, sizeof content, 0);
  ::close(file);
  return got == 0 || (got == sizeof content && content.magic == kMagic && content.batch == 0);
}

Status AcknowledgedFile::write(BatchNumber batch) const {
  const Content content{.magic = kMagic, .crc = crc_of(batch), .batch = batch};
  if (::pwrite(file_, &content, sizeof content, 0) != sizeof content)
    return system_failure("cannot write " + std::string(kAcknowledgedFileName));
  return {};
}

}  // namespace kilokv::server::storage
