// The stream of a watch: what it sends, when, and what ends it.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/error_detail.hpp"
#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

class ServiceWatchTest : public ServiceTest {
 protected:
  explicit ServiceWatchTest(const ServiceOptions& options = {}) : ServiceTest(options) { service_.serve(&database_); }
  ~ServiceWatchTest() override { service_.close(); }

  struct Open {
    std::unique_ptr<grpc::ClientContext> call;
    std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> reader;
    v1::WatchResponse answer;

    // The next answer with a write.
    bool next() {
      while (reader->Read(&answer)) {
        if (answer.writes_size() > 0) return true;
      }
      return false;
    }
  };
  Open open(const v1::WatchRequest& request) {
    Open open{context(), nullptr, {}};
    open.reader = stub_->Watch(open.call.get(), request);
    return open;
  }
  static v1::WatchRequest after(std::uint64_t version, std::uint32_t writes = 0) {
    v1::WatchRequest request;
    request.mutable_after()->set_version(version);
    request.mutable_after()->set_writes(writes);
    return request;
  }
  grpc::Status refused(const v1::WatchRequest& request) {
    Open watch = open(request);
    while (watch.reader->Read(&watch.answer)) continue;
    grpc::Status status = watch.reader->Finish();
    detail_ = detail_of(*watch.call);
    return status;
  }
  v1::ErrorDetail detail_of_refused(const v1::WatchRequest& request) {
    EXPECT_FALSE(refused(request).ok());
    return detail_;
  }

  v1::ErrorDetail detail_;  // of the last refusal
};

TEST_F(ServiceWatchTest, GivesWhatIsThereAndThenWhatComes) {
  database_.log.append({{"a", 1, 1, "one"}, {"b", 2, 1}}, 2);
  database_.log_incarnation.id.fill(7);
  Open watch = open(after(0));
  ASSERT_TRUE(watch.next());
  EXPECT_EQ(watch.answer.incarnation(), std::string(16, '\7'));
  ASSERT_EQ(watch.answer.writes_size(), 2);
  EXPECT_EQ(watch.answer.writes(0).key(), "a");
  EXPECT_EQ(watch.answer.writes(0).value().bytes(), "one");
  EXPECT_EQ(watch.answer.writes(0).batch_time_us(), 1000);
  EXPECT_EQ(watch.answer.writes(1).value().kind_case(), v1::Value::KIND_NOT_SET);
  EXPECT_EQ(watch.answer.writes(1).version(), 2u);
  EXPECT_EQ(watch.answer.writes(1).batch(), 1u);
  EXPECT_EQ(watch.answer.writes(1).rank(), 1u);
  EXPECT_FALSE(watch.answer.writes(1).expired());
  EXPECT_EQ(watch.answer.position().version(), 2u);
  database_.log.append({{"b", 3, 1}}, 1, true);
  ASSERT_TRUE(watch.next());
  EXPECT_TRUE(watch.answer.writes(0).expired());
  EXPECT_TRUE(watch.answer.incarnation().empty());
  watch.call->TryCancel();
}

TEST_F(ServiceWatchTest, APositionComesAlsoIfNothingIsWritten) {
  database_.log.append({{"a", 1, 1, "one"}}, 1);
  v1::WatchRequest request;
  request.mutable_range()->set_from("z");
  Open watch = open(request);
  ASSERT_TRUE(watch.reader->Read(&watch.answer));
  EXPECT_EQ(watch.answer.position().version(), 1u);
  database_.log.append({{"a", 2, 1, "two"}}, 1);
  const auto begin = std::chrono::steady_clock::now();
  while (watch.answer.position().version() < 2) ASSERT_TRUE(watch.reader->Read(&watch.answer));
  EXPECT_EQ(watch.answer.writes_size(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  watch.call->TryCancel();
}

// Answers are short, so that no client waits long for one, and the next one comes when the last one is taken.
TEST_F(ServiceWatchTest, ALongTransactionIsSplitAndMarked) {
  std::vector<FakeLog::Write> writes;
  for (std::uint32_t i = 1; i <= 40; ++i) writes.push_back({"k" + std::to_string(i), 1, i, std::string(20000, 'v')});
  database_.log.append(writes, 1);
  database_.log.append({{"last", 2, 1, "x"}}, 1);
  Open watch = open(after(0));
  std::size_t count = 0, answers = 0;
  while (count < writes.size()) {
    ASSERT_TRUE(watch.next());
    EXPECT_LT(watch.answer.ByteSizeLong(), 200000u);
    count += static_cast<std::size_t>(watch.answer.writes_size());
    ++answers;
    EXPECT_EQ(watch.answer.unfinished(), count < writes.size());
  }
  EXPECT_GE(answers, 6u);
  watch.call->TryCancel();
}

TEST_F(ServiceWatchTest, ItGoesOnWithinATransaction) {
  database_.log.append({{"a", 1, 1, "1"}, {"b", 1, 2, "2"}, {"c", 1, 3, "3"}}, 1);
  Open watch = open(after(1, 2));
  ASSERT_TRUE(watch.next());
  ASSERT_EQ(watch.answer.writes_size(), 1);
  EXPECT_EQ(watch.answer.writes(0).key(), "c");
  watch.call->TryCancel();
}

TEST_F(ServiceWatchTest, WhatIsNotKeptIsAborted) {
  for (Version version = 1; version <= 3; ++version) database_.log.append({{"a", version, 1, "x"}}, 1);
  database_.log.trim(3);
  const grpc::Status status = refused(after(0));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_NE(status.error_message().find("from version 2"), std::string::npos) << status.error_message();
  EXPECT_EQ(detail_.reason(), v1::ERROR_REASON_WATCH_TOO_OLD);
  EXPECT_EQ(detail_.field(), "after.version");
  EXPECT_EQ(detail_.limit(), "2 or greater");
  Open watch = open(after(2));
  EXPECT_TRUE(watch.next());
  watch.call->TryCancel();
}

TEST_F(ServiceWatchTest, APositionOfAnotherIncarnationIsAborted) {
  database_.log.append({{"a", 1, 1, "x"}}, 1);
  v1::WatchRequest request = after(0);
  request.set_incarnation(std::string(16, 'o'));
  EXPECT_EQ(refused(request).error_code(), grpc::StatusCode::ABORTED);
  request.set_incarnation(std::string(16, '\0'));
  Open watch = open(request);
  EXPECT_TRUE(watch.next());
  watch.call->TryCancel();
}

TEST_F(ServiceWatchTest, WrongRequestsAreRefused) {
  v1::WatchRequest request;
  request.mutable_range()->set_from("b");
  request.mutable_range()->set_to("a");
  EXPECT_EQ(detail_of_refused(request).field(), "range.to");
  request.mutable_range()->set_to(std::string(2000, 'x'));
  EXPECT_EQ(detail_of_refused(request).setting(), "--key-bytes-max");
  EXPECT_EQ(detail_of_refused(after(9)).field(), "after.version");
  request = {};
  request.set_incarnation("short");
  EXPECT_EQ(detail_of_refused(request).field(), "incarnation");
}

// A client that takes nothing neither fills the memory nor delays the others.
TEST_F(ServiceWatchTest, ASlowClientOnlyFallsBehind) {
  Open slow = open(after(0));
  Open quick = open(after(0));
  for (int i = 0; i < 200; ++i) {
    const Version version = database_.log.newest().next_version;
    database_.log.append({{"a", version, 1, std::string(100000, 'v')}}, 1);
  }
  Version seen = 0;
  while (seen < 200) {
    ASSERT_TRUE(quick.next());
    for (const v1::WatchedWrite& write : quick.answer.writes()) EXPECT_EQ(write.version(), ++seen);
  }
  EXPECT_LT(service_.unsent_answer_bytes(), std::uint64_t{2} << 20);
  seen = 0;
  while (seen < 200) {
    ASSERT_TRUE(slow.next());
    for (const v1::WatchedWrite& write : slow.answer.writes()) EXPECT_EQ(write.version(), ++seen);
  }
  slow.call->TryCancel();
  quick.call->TryCancel();
}

TEST_F(ServiceWatchTest, AServerThatStopsEndsIt) {
  Open watch = open(after(0));
  ASSERT_TRUE(watch.reader->Read(&watch.answer));
  service_.close();
  while (watch.reader->Read(&watch.answer)) continue;
  EXPECT_EQ(watch.reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

ServiceOptions few_streams() {
  ServiceOptions options;
  options.streams_max = 1;
  return options;
}

class FewWatchesTest : public ServiceWatchTest {
 protected:
  FewWatchesTest() : ServiceWatchTest(few_streams()) {}
};

TEST_F(FewWatchesTest, AWatchHasAPlaceAmongTheStreams) {
  database_.log.append({{"a", 1, 1, "one"}}, 1);
  Open watch = open(after(0));
  ASSERT_TRUE(watch.next());
  const grpc::Status status = refused(after(0));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("--streams-max"), std::string::npos) << status.error_message();
  watch.call->TryCancel();
  watch.reader->Finish();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool again = false;
  while (!again && std::chrono::steady_clock::now() < end) {
    Open next = open(after(0));
    again = next.next();
    next.call->TryCancel();
    next.reader->Finish();
  }
  EXPECT_TRUE(again);
}

}  // namespace
}  // namespace kilokv::server
