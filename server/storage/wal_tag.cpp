#include "server/storage/wal_tag.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "server/storage/crc32c.hpp"
#include "server/storage/data_directory.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::uint32_t kMagic = 0x4754414B;  // "KATG"

struct Content {
  std::uint32_t magic = kMagic;
  std::uint32_t crc = 0;  // of the tag
  WalTag tag{};
};

std::string_view view_of(const WalTag& tag) { return {tag.data(), tag.size()}; }

}  // namespace

bool begins_with(std::string_view write, const WalTag& tag) {
  if (write.size() < kTaggedBytes) return false;
  write.remove_prefix(kWriteHeaderBytes);
  return write.starts_with(kTagEntryHead) && write.substr(kTagEntryHead.size()).starts_with(view_of(tag));
}

std::optional<WalTag> read_wal_tag(const std::string& directory) {
  const int file = ::open((directory + "/" + kWalTagFileName).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  Content content;
  const ssize_t got = ::pread(file, &content, sizeof content, 0);
  ::close(file);
  if (got != sizeof content || content.magic != kMagic || content.crc != crc32c(view_of(content.tag))) {
    return std::nullopt;
  }
  return content.tag;
}

// A file that is torn here counts as none. That does no harm, because no write of the older tag is needed any more.
// First the removal of the logs with the older tag must be durable: without their tag, all of their writes would count.
Result<WalTag> renew_wal_tag(const std::string& directory) {
  if (Status synced = sync_directory(directory); !synced.ok()) return synced;
  const std::string path = directory + "/" + kWalTagFileName;
  Content content;
  if (Status status = fill_with_random(&content.tag); !status.ok()) return status;
  content.crc = crc32c(view_of(content.tag));
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return system_failure("cannot open " + path);
  const bool written = ::pwrite(file, &content, sizeof content, 0) == sizeof content && ::fsync(file) == 0;
  const Status status = written ? Status() : system_failure("cannot write " + path);
  ::close(file);
  if (!status.ok()) return status;
  if (Status synced = sync_directory(directory); !synced.ok()) return synced;
  return content.tag;
}

}  // namespace kilokv::server::storage
