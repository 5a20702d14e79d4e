#include "server/service/watch_streamer.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/service/encode.hpp"
#include "server/service/watch_call.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kWatchAnswerBytes = std::uint64_t{128} << 10;  // of an answer, unless a single write is longer
constexpr std::chrono::milliseconds kQuietMax{500}, kForeverQuiet{3600000};  // until a position is sent; no watch

std::string text_of(const Incarnation& incarnation) {
  return {reinterpret_cast<const char*>(incarnation.id.data()), incarnation.id.size()};
}

Status of_another_incarnation() {
  return {
      StatusCode::aborted, ErrorReason::watch_too_old,
      "incarnation: the database was restored from a backup since, and the position is of another incarnation; read "
      "the range again with a scan, and watch from its boundary_version on"};
}

void fill_write(const StoredRecord& write, const LoggedBatch& batch, v1::WatchedWrite* out) {
  out->set_key(write.key.data(), write.key.size());
  if (write.type == ValueType::integer) out->mutable_value()->set_integer(write.integer);
  if (write.type == ValueType::bytes) out->mutable_value()->set_bytes(write.bytes.data(), write.bytes.size());
  out->set_version(write.version);
  out->set_batch_time_us(batch.header.time_us);
  out->set_expires_at_us(write.expires_us);
  out->set_expired(batch.expired);
  out->set_batch(batch.header.number);
  out->set_rank(static_cast<std::uint32_t>(write.version - batch.header.first_version));
}

}  // namespace

void WatchStreamer::Bell::ring() {
  {
    const std::lock_guard lock(mutex_);
    has_rung_ = true;
  }
  rung_.notify_one();
}

bool WatchStreamer::Bell::wait_until(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  rung_.wait_until(lock, time, [this] { return has_rung_; });
  return std::exchange(has_rung_, false);
}

Status WatchStreamer::add(std::shared_ptr<WatchCall> call) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return draining();
    new_.push_back(std::move(call));
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { serve(); });
      pthread_setname_np(thread_.native_handle(), "watch");
    }
  }
  wake();
  return {};
}

void WatchStreamer::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void WatchStreamer::serve() {
  constexpr int kNice = 10;  // as the threads that decode
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) break;
      for (std::shared_ptr<WatchCall>& call : new_) watches_.push_back({std::move(call), nullptr, Clock::now()});
      new_.clear();
    }
    bool has_more = false;
    for (auto watch = watches_.begin(); watch != watches_.end();) {
      bool ended = false;
      has_more |= turn(&*watch, &ended);
      watch = ended ? watches_.erase(watch) : std::next(watch);
    }
    if (has_more) continue;
    const bool rang = bell_->wait_until(Clock::now() + (watches_.empty() ? kForeverQuiet : kQuietMax));
    if (!rang && reader_ != nullptr) reader_->release();
  }
  watches_.clear();
  reader_.reset();
}

bool WatchStreamer::turn(Watch* watch, bool* ended) {
  *ended = watch->call->is_over();
  if (*ended || !watch->call->is_sent()) return false;
  // In this order: first the bell, then the look at the log, so that no batch is missed. And first the look at the log,
  // then at the rights, so that nothing is sent that was written after a revoke.
  BatchNumber through = 0;
  if (const Result<Database*> database = environment_->gate.get(); database.ok()) {
    ring_after((*database)->answered().batch);
    through = (*database)->answered().batch;
  }
  const Result<Database*> database = watch->call->database();
  Status status = database.status();
  bool has_more = false;
  if (status.ok() && watch->cursor == nullptr) status = begin(watch, *database);
  if (status.ok()) status = advance(watch, *database, through, &has_more);
  if (status.ok()) return has_more;
  watch->call->end(status);
  *ended = true;
  return false;
}

// The bell rings when the batch after this one is answered.
void WatchStreamer::ring_after(BatchNumber batch) {
  if (waits_for_ > batch) return;
  const Result<Database*> database = environment_->gate.get();
  if (!database.ok()) return;
  waits_for_ = batch + 1;
  (*database)->when_answered(waits_for_, [bell = bell_] { bell->ring(); });
}

Status WatchStreamer::begin(Watch* watch, Database* database) {
  const v1::WatchRequest& request = watch->call->request();
  if (!request.incarnation().empty() && request.incarnation() != text_of(database->incarnation())) {
    return of_another_incarnation();
  }
  if (reader_ == nullptr) {
    Result<std::unique_ptr<LogReader>> reader = database->open_log_reader();
    if (!reader.ok()) return reader.status();
    reader_ = std::move(*reader);
  }
  auto cursor = std::make_unique<WatchCursor>(reader_.get(), request.range().from(), request.range().to());
  const WatchPosition after{request.after().version(), request.after().writes()};
  // A client may have an answer whose batch is not yet among those that are answered as a whole.
  Status status = cursor->start(request.has_after() ? &after : nullptr, database->durable());
  if (status.ok()) watch->cursor = std::move(cursor);
  return status;
}

Status WatchStreamer::advance(Watch* watch, Database* database, BatchNumber through, bool* has_more) const {
  v1::WatchResponse answer;
  WatchCursor& cursor = *watch->cursor;
  const std::uint64_t bytes_max = std::min(kWatchAnswerBytes, environment_->options.message_bytes_max / 2);
  const Result<bool> caught_up = cursor.advance(
      through, bytes_max,
      [&](const StoredRecord& write, const LoggedBatch& batch) { fill_write(write, batch, answer.add_writes()); });
  if (!caught_up.ok()) return caught_up.status();
  *has_more = !*caught_up && answer.writes_size() == 0;  // with an answer under way, its end rings
  const bool is_quiet = Clock::now() - watch->sent >= kQuietMax;
  if (answer.writes_size() > 0 || !watch->announced || is_quiet) send(watch, *database, &answer);
  return {};
}

void WatchStreamer::send(Watch* watch, const Database& database, v1::WatchResponse* answer) {
  const WatchPosition& position = watch->cursor->position();
  answer->mutable_position()->set_version(position.version);
  answer->mutable_position()->set_writes(position.writes);
  answer->set_unfinished(watch->cursor->within_transaction());
  if (!watch->announced) answer->set_incarnation(text_of(database.incarnation()));
  watch->announced = true;
  watch->sent = Clock::now();
  watch->call->send(*answer);
}

}  // namespace kilokv::server
