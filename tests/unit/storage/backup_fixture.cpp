#include "tests/unit/storage/backup_fixture.hpp"

#include <gtest/gtest.h>

namespace kilokv::server::storage {

std::vector<std::string> frames_of(BackupSource* source) {
  std::vector<std::string> frames;
  for (std::string frame;;) {
    const Result<bool> has_more = source->next(&frame);
    EXPECT_TRUE(has_more.ok()) << has_more.status().message();
    if (!has_more.ok() || !*has_more) return frames;
    frames.push_back(frame);
  }
}

VisitedBackup::VisitedBackup(const std::vector<std::string>& frames, BackupUntil until) : visit(&target, until) {
  FrameChain chain;
  for (const std::string& bytes : frames) {
    const Result<Frame> frame = decode_frame(bytes);
    status = frame.status();
    if (status.ok()) status = chain.check(*frame);
    if (status.ok()) status = visit.take(*frame);
    if (!status.ok()) return;
  }
}

}  // namespace kilokv::server::storage
