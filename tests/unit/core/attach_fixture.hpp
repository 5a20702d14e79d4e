// A whole core whose sessions change their holders. Thread safety: none; one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {

class AttachFixture : public CoreFixture {
 protected:
  using Sink = std::shared_ptr<RecordingSink>;
  using Outcomes = std::map<std::uint32_t, engine::Outcome>;

  explicit AttachFixture(std::uint64_t seed = 1) : CoreFixture(seed) {}

  // As `holder` of the session.
  Sink send(const Build& build, const SessionId& session, std::uint64_t number, std::uint64_t holder,
            std::uint64_t acknowledged_through = 0, std::uint64_t uploaded_keys = 0) {
    auto request = make(build, session, number, holder, acknowledged_through, uploaded_keys);
    Sink sink = std::static_pointer_cast<RecordingSink>(request->sink);
    database->submit(std::move(request));
    return sink;
  }
  // The same, not sent yet.
  std::unique_ptr<Request> make(const Build& build, const SessionId& session, std::uint64_t number,
                                std::uint64_t holder, std::uint64_t acknowledged_through = 0,
                                std::uint64_t uploaded_keys = 0) {
    auto request = database->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    build(builder);
    request->identity = {session, number, acknowledged_through, {}, holder};
    request->uploaded_keys = uploaded_keys;
    request->sink = std::make_shared<RecordingSink>();
    return request;
  }

  struct Attach {
    std::optional<Result<SessionList>> answer;
    std::uint64_t begun_holder = 0;  // 0: not yet
  };
  std::shared_ptr<Attach> begin_attach(const AttachTarget& target) {
    auto attach = std::make_shared<Attach>();
    database->attach_session(
        {}, nullptr, target,
        [this, attach, target](Result<SessionList> list) {
          const Status status = list.ok() ? database->add_results(target, &*list) : list.status();
          attach->answer = status.ok() ? std::move(list) : Result<SessionList>(status);
        },
        [attach](BatchNumber, std::uint64_t holder) { attach->begun_holder = holder; });
    return attach;
  }
  static AttachTarget target_of(const SessionId& session, std::uint64_t attempt = 0) {
    return {.session = session, .attempt = attempt, .bytes_max = std::uint64_t{4} << 20};
  }
  // Runs until the answer is there.
  SessionList attach(const SessionId& session, std::uint64_t attempt = 0) {
    return finish(begin_attach(target_of(session, attempt)));
  }
  // The list of a holder. `from`: where it begins.
  SessionList list(const SessionId& session, std::uint64_t holder, const SessionListPosition& from = {},
                   std::uint64_t bytes_max = std::uint64_t{4} << 20) {
    AttachTarget target = target_of(session);
    target.holder = holder;
    target.from = from;
    target.bytes_max = bytes_max;
    return finish(begin_attach(target));
  }
  SessionList finish(const std::shared_ptr<Attach>& attach) {
    settle();
    EXPECT_TRUE(attach->answer);
    if (!attach->answer) return {};
    EXPECT_TRUE(attach->answer->ok()) << attach->answer->status().message();
    return attach->answer->ok() ? std::move(**attach->answer) : SessionList();
  }
  Status refusal(const std::shared_ptr<Attach>& attach) {
    settle();
    return attach->answer ? attach->answer->status() : Status(StatusCode::internal, "no answer");
  }
  Status attach_status(const SessionId& session) { return refusal(begin_attach(target_of(session))); }

  static const ListedRequest* find(const SessionList& list, std::uint64_t number) {
    for (const ListedRequest& listed : list.requests) {
      if (listed.number == number) return &listed;
    }
    return nullptr;
  }
  // The outcomes of the results that the list has of a request, without those that were shown before.
  static Outcomes outcomes(const ListedRequest& listed) {
    struct Look : ResultVisitor {
      void transaction(const TransactionResult& result) override {
        if (skipped > 0) {
          --skipped;
        } else {
          EXPECT_TRUE(all.emplace(result.index, result.outcome).second) << "index " << result.index;
        }
      }
      void guard_value(const ReadValue&) override {}
      void read(std::uint32_t, const ReadValue&) override {}
      std::uint32_t skipped = 0;
      Outcomes all;
    } look;
    look.skipped = listed.shown;
    for (const auto& slice : listed.results) slice->visit(&look);
    return look.all;
  }
  static void expect_counts(const ListedRequest* listed, std::uint32_t decided, std::uint32_t parked,
                            std::uint32_t queued) {
    ASSERT_NE(listed, nullptr);
    EXPECT_EQ(listed->decided, decided) << listed->number;
    EXPECT_EQ(listed->parked, parked) << listed->number;
    EXPECT_EQ(listed->queued, queued) << listed->number;
    EXPECT_EQ(outcomes(*listed).size(), decided) << listed->number;
  }
  static void expect_fenced(const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::failed_precondition) << status.message();
    EXPECT_EQ(status.reason(), ErrorReason::session_fenced) << status.message();
  }
  static void expect_fenced(const Sink& sink) {
    ASSERT_TRUE(sink->failure);
    expect_fenced(*sink->failure);
    EXPECT_TRUE(sink->failure->not_run());
    EXPECT_TRUE(sink->answers.empty());
  }
  Status upload_status(const SessionId& session, std::uint64_t number, std::uint64_t holder,
                       const std::string& key = "absent") {
    ReadSetChunk chunk;
    chunk.identity = {session, number, 0, {}, holder};
    const Version versions[] = {0};
    chunk.keys = {key};
    chunk.versions = versions;
    return database->upload(chunk).status();
  }
};

}  // namespace kilokv::server
