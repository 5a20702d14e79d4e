// The stream of a backup: its bytes, its rate, how it goes on, and what ends it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

// Frames of one letter each: a, b, c and so on.
class LetterSource final : public BackupSource {
 public:
  LetterSource(unsigned char id, std::size_t frames, std::size_t bytes, std::atomic<int>* alive,
               const std::atomic<bool>* is_lost)
      : frames_(frames), bytes_(bytes), alive_(alive), is_lost_(is_lost) {
    id_.fill(id);
    ++*alive_;
  }
  ~LetterSource() override { --*alive_; }
  LetterSource(const LetterSource&) = delete;
  LetterSource& operator=(const LetterSource&) = delete;

  const BackupId& id() const override { return id_; }
  BatchNumber boundary() const override { return 42; }
  std::uint64_t estimated_bytes() const override { return frames_ * bytes_; }
  bool is_lost() const override { return *is_lost_; }
  Status seek(const BackupPoint& point) override {
    next_ = point.frame + 1;
    return {};
  }
  Result<bool> next(std::string* frame) override {
    frame->assign(next_ < frames_ ? bytes_ : 0, static_cast<char>('a' + next_));
    return next_++ < frames_;
  }

 private:
  BackupId id_{};
  const std::size_t frames_, bytes_;
  std::atomic<int>* const alive_;
  const std::atomic<bool>* const is_lost_;
  std::size_t next_ = 0;
};

ServiceOptions backup_options() {
  ServiceOptions options;
  options.backup_rate_max = std::uint64_t{1} << 30;
  return options;
}

class ServiceBackupTest : public ServiceTest {
 protected:
  explicit ServiceBackupTest(const ServiceOptions& options = backup_options()) : ServiceTest(options) {
    make_frames(5, 1000);
    service_.serve(&database_);
  }
  ~ServiceBackupTest() override { service_.close(); }  // before the count of the sources is gone

  void make_frames(std::size_t frames, std::size_t bytes) {
    database_.backups = [this, frames, bytes] {
      return std::make_unique<LetterSource>(static_cast<unsigned char>(++made_), frames, bytes, &alive_, &is_lost_);
    };
  }
  struct Read {
    std::string data;
    std::string backup;
    std::uint64_t boundary = 0, estimated_bytes = 0;
    grpc::Status status;
  };
  // Reads a stream, but at most about so many bytes.
  Read read(const v1::BackupRequest& request, std::size_t most = SIZE_MAX) {
    const auto call = context();
    const auto reader = stub_->Backup(call.get(), request);
    Read all;
    for (v1::BackupResponse answer; all.data.size() < most && reader->Read(&answer);) {
      all.data += answer.data();
      if (!answer.backup().empty()) all.backup = answer.backup();
      all.boundary = std::max(all.boundary, answer.boundary());
      all.estimated_bytes = std::max(all.estimated_bytes, answer.estimated_bytes());
    }
    if (all.data.size() >= most) call->TryCancel();
    all.status = reader->Finish();
    return all;
  }
  bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  std::atomic<int> made_{0}, alive_{0};
  std::atomic<bool> is_lost_{false};
};

TEST_F(ServiceBackupTest, SendsAllFramesAndLetsGoOfTheSnapshot) {
  make_frames(3, 300 << 10);  // each is split over several answers
  const Read all = read({});
  EXPECT_TRUE(all.status.ok()) << all.status.error_message();
  const std::size_t bytes = 300 << 10;
  EXPECT_EQ(all.data, std::string(bytes, 'a') + std::string(bytes, 'b') + std::string(bytes, 'c'));
  EXPECT_EQ(all.backup, std::string(16, 1));
  EXPECT_EQ(all.boundary, 42u);
  EXPECT_EQ(all.estimated_bytes, 3 * bytes);
  EXPECT_TRUE(comes_true([&] { return alive_ == 0; }));
  EXPECT_EQ(service_.unsent_answer_bytes(), 0u);
  const BackupMetrics& metrics = service_.environment()->backups;
  EXPECT_EQ(metrics.complete, 1u);
  EXPECT_EQ(metrics.sent_bytes, 3 * bytes);
  EXPECT_GT(metrics.last_complete, 0);
  EXPECT_FALSE(metrics.is_running);
}

TEST_F(ServiceBackupTest, GoesOnAfterAFrame) {
  make_frames(20, 200 << 10);
  const Read part = read({}, 250 << 10);
  v1::BackupRequest request;
  request.set_backup(part.backup);
  request.mutable_after()->set_frame(1);
  Read rest;
  ASSERT_TRUE(comes_true([&] {
    rest = read(request);
    return rest.status.ok();
  })) << rest.status.error_message();
  EXPECT_EQ(rest.data.size(), std::size_t{18} * (200 << 10));
  EXPECT_EQ(rest.data.front(), 'c');
  EXPECT_EQ(made_, 1);
  const Read again = read(request);
  EXPECT_EQ(again.status.error_code(), grpc::StatusCode::ABORTED) << "it is complete, and not kept any more";
}

TEST_F(ServiceBackupTest, ABackupThatIsNotKeptIsAborted) {
  v1::BackupRequest request;
  request.set_backup(std::string(16, 'x'));
  EXPECT_EQ(read(request).status.error_code(), grpc::StatusCode::ABORTED);
  request.set_backup("short");
  EXPECT_EQ(read(request).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Its log was trimmed, because the disk is short. So its snapshot must not keep old files any longer.
TEST_F(ServiceBackupTest, ASnapshotThatNobodyCanGoOnWithIsNotKept) {
  make_frames(100, 200 << 10);
  read({}, 1);
  EXPECT_TRUE(comes_true([&] { return service_.environment()->backups.interrupted == 1; }));
  EXPECT_EQ(alive_, 1);
  is_lost_ = true;
  EXPECT_TRUE(comes_true([&] { return alive_ == 0; }));
}

TEST_F(ServiceBackupTest, ANewBackupTakesThePlaceOfAKeptOne) {
  make_frames(100, 200 << 10);
  const Read part = read({}, 1);
  EXPECT_EQ(alive_, 1) << "it is kept";
  EXPECT_TRUE(comes_true([&] { return service_.environment()->backups.interrupted == 1; }));
  make_frames(2, 10);
  ASSERT_TRUE(comes_true([&] { return read({}).status.ok(); }));
  v1::BackupRequest request;
  request.set_backup(part.backup);
  EXPECT_EQ(read(request).status.error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(ServiceBackupTest, KeepsToTheRate) {
  make_frames(4, 128 << 10);
  v1::BackupRequest request;
  request.set_bytes_per_second(1 << 20);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(read(request).status.ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(250));
}

TEST_F(ServiceBackupTest, OneAtATime) {
  make_frames(100, 128 << 10);
  v1::BackupRequest slow;
  slow.set_bytes_per_second(128 << 10);
  const auto call = context();
  const auto reader = stub_->Backup(call.get(), slow);
  v1::BackupResponse first;
  ASSERT_TRUE(reader->Read(&first));
  const Read other = read({});
  EXPECT_EQ(other.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  // The same backup again, whose client has lost its connection, takes the place of the earlier call.
  v1::BackupRequest same;
  same.set_backup(first.backup());
  EXPECT_FALSE(read(same, 1).data.empty());
  v1::BackupResponse ignored;
  while (reader->Read(&ignored)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ServiceBackupTest, EndsWhenTheServerStops) {
  make_frames(100, 128 << 10);
  v1::BackupRequest slow;
  slow.set_bytes_per_second(128 << 10);
  const auto call = context();
  const auto reader = stub_->Backup(call.get(), slow);
  v1::BackupResponse answer;
  ASSERT_TRUE(reader->Read(&answer));
  service_.close();
  EXPECT_EQ(alive_, 0) << "the log may be destroyed now";
  while (reader->Read(&answer)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

class OldBackupTest : public ServiceBackupTest {
 protected:
  OldBackupTest() : ServiceBackupTest(short_lived()) {}
  static ServiceOptions short_lived() {
    ServiceOptions options = backup_options();
    options.backup_age_us_max = 100000;
    return options;
  }
};

// One piece takes longer than the snapshot may live.
TEST_F(OldBackupTest, AClientThatIsSlowDoesNotKeepItForLonger) {
  make_frames(100, 512 << 10);
  v1::BackupRequest slow;
  slow.set_bytes_per_second(64 << 10);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(read(slow).status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  EXPECT_TRUE(comes_true([&] { return alive_ == 0; }));
}

TEST_F(OldBackupTest, AClientThatTakesNothingDoesNotKeepItForLonger) {
  make_frames(1000, 512 << 10);
  const auto call = context();
  const auto reader = stub_->Backup(call.get(), {});
  EXPECT_TRUE(comes_true([&] { return service_.environment()->backups.failed == 1; }));
  EXPECT_TRUE(comes_true([&] { return alive_ == 0; }));
  v1::BackupResponse ignored;
  while (reader->Read(&ignored)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(ServiceBackupTest, ARateThatIsTooLowIsRefused) {
  v1::BackupRequest slow;
  slow.set_bytes_per_second((64 << 10) - 1);
  const Read refused = read(slow);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(refused.status.error_message().find("bytes_per_second"), std::string::npos);
  slow.set_bytes_per_second(64 << 10);
  make_frames(1, 10);
  EXPECT_TRUE(read(slow).status.ok());
}

TEST_F(OldBackupTest, ASnapshotIsKeptForALimitedTime) {
  make_frames(100, 128 << 10);
  v1::BackupRequest slow;
  slow.set_bytes_per_second(256 << 10);
  EXPECT_EQ(read(slow).status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(comes_true([&] { return alive_ == 0; }));
  EXPECT_EQ(service_.environment()->backups.failed, 1u);
}

}  // namespace
}  // namespace kilokv::server
