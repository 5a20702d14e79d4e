#include "server/core/pipeline/access_changes.hpp"

#include <string>
#include <utility>
#include <vector>

#include "server/core/access/access_record.hpp"

namespace kilokv::server {

static constexpr DurationUs kQueuedUsMax = DurationUs{60} * 1000000;  // longer than anything waits in the queue

void AccessChanges::make(const std::shared_ptr<Client>& client, AccessEdit edit, AccessChangeBegins begins,
                         std::function<void(Result<BatchNumber>)> done) {
  if (core_->draining.load(std::memory_order_acquire)) return done(draining().as_not_run());
  if (Status status = commands_->enter(client); !status.ok()) return done(std::move(status));
  execute_->post(client, [this, edit = std::move(edit), begins = std::move(begins),
                          done = commands_->returning(client, std::move(done))] { make_now(edit, begins, done); });
}

// The change, and before it what it needs. What was accepted under a token may go on when the token has expired. So a
// token is only replaced when nothing of that can be parked any more.
std::vector<AccessChange> AccessChanges::with_replaced_token(const AccessTable& before, AccessChange change) const {
  std::vector<AccessChange> changes;
  if (change.kind == AccessChange::Kind::put_token) {
    const TimeUs expired_by_us = core_->time_of_day() - core_->options.wait_timeout_us_max - kQueuedUsMax;
    if (const Token* const old = before.replaced_by(change.token, expired_by_us)) {
      AccessChange removal{.kind = AccessChange::Kind::remove_token, .role = {}, .user = {}, .token = {}};
      removal.token.id = old->id;
      changes.push_back(std::move(removal));
    }
  }
  changes.push_back(std::move(change));
  return changes;
}

// A command. What was executed before is in earlier batches, so only what is queued or parked can need a right that the
// change takes away.
void AccessChanges::make_now(const AccessEdit& edit, const AccessChangeBegins& begins,
                             const std::function<void(Result<BatchNumber>)>& done) {
  const Access::Table before = core_->access.latest();
  // A refusal may show earlier changes, such as that a token is gone. So it waits until these are durable.
  const auto refuse = [this, &done](const Status& status) {
    core_->when_answered(last_change_, [done, status] { done(status.as_not_run()); });
  };
  Result<AccessChange> change = edit(*before);
  if (!change.ok()) return refuse(change.status());
  std::vector<AccessChange> changes = with_replaced_token(*before, std::move(*change));
  Result<AccessTable> after = before->after(changes, core_->options.certificates_log_in);
  if (!after.ok()) return refuse(after.status());
  std::vector<std::string> records;
  std::uint64_t bytes = 0;
  for (const AccessChange& one : changes) bytes += records.emplace_back(encode_change(one)).size();
  // A right can be taken away when the disk is full, as long as the part is left that new data may not use.
  const std::uint64_t log_bytes = bytes + kSmallRecordBytes;
  Status status = core_->log->reserve(log_bytes, LogUse::access_changes);
  if (!status.ok()) return done(status.as_not_run());
  const bool takes_away = before->takes_away(changes.back());
  std::string removed_user;
  if (changes.back().kind == AccessChange::Kind::remove_user) removed_user = changes.back().user.name;
  // What is attached goes with the next batch.
  const BatchNumber batch = last_change_ = core_->executed.batch() + 1;
  if (begins) begins(batch, changes.size() > 1 ? changes.front().token.id : std::string());
  core_->access.install(std::move(*after), std::move(changes), bytes, batch, core_->answered);
  for (std::string& record : records) batcher_->attach_access_change(std::move(record));
  if (!removed_user.empty()) sessions_->close_all_of(removed_user);
  batcher_->attach([this, log_bytes] { core_->log->release(log_bytes); });
  // The answer is sent after this batch. If the change takes a right away, it is also sent after the search for what
  // needs this right.
  std::function<void()> answer = [this, batch, done] { core_->when_answered(batch, [batch, done] { done(batch); }); };
  if (!takes_away) return answer();
  execute_->end_without_rights(std::move(answer));
}

}  // namespace kilokv::server
