#include "server/core/pipeline/access_changes.hpp"

#include <utility>

#include "server/core/access/access_record.hpp"

namespace kilokv::server {

static constexpr std::uint64_t kRecordBytes = 512;  // of a log record that has nothing else

void AccessChanges::make(std::shared_ptr<Client> client, AccessEdit edit,
                         std::function<void(Result<BatchNumber>)> done) {
  if (core_->draining.load(std::memory_order_acquire)) return done(draining().as_not_run());
  if (Status status = commands_->enter(client); !status.ok()) return done(std::move(status));
  execute_->post([this, edit = std::move(edit), done = commands_->returning(std::move(client), std::move(done))] {
    make_now(edit, done);
  });
}

// A command. What was executed before is in earlier batches, so only what is queued or parked can need a right that the
// change takes away.
void AccessChanges::make_now(const AccessEdit& edit, const std::function<void(Result<BatchNumber>)>& done) {
  const Access::Table before = core_->access.latest();
  const Result<AccessChange> change = edit(*before);
  if (!change.ok()) return done(change.status().as_not_run());
  Status status = before->check(*change, core_->options.certificates_log_in);
  std::string record = encode_change(*change);
  // A right can be taken away when the disk is full, as long as the part is left that new data may not use.
  const std::uint64_t log_bytes = record.size() + kRecordBytes;
  if (status.ok()) status = core_->log->reserve(log_bytes, LogUse::reads_and_deletes);
  if (!status.ok()) return done(status.as_not_run());
  Access::Table after = core_->access.change(*change);
  execute_->end_without_rights();
  batcher_->attach_access_change(std::move(record));
  if (change->kind == AccessChange::Kind::remove_user) sessions_->close_all_of(change->user.name);
  // What is attached goes with the next batch.
  batcher_->attach([this, after = std::move(after), batch = core_->executed.batch() + 1, log_bytes, done] {
    core_->log->release(log_bytes);
    core_->access.set_durable(after);
    done(batch);
  });
}

}  // namespace kilokv::server
