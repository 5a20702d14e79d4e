#include "server/core/checkpoint/checkpointer.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "server/core/access/access_record.hpp"
#include "server/core/fail_point.hpp"

namespace kilokv::server {
namespace {

// The executor copies a slice in one command. These bound its time.
constexpr std::size_t kSliceRecords = 4096;
constexpr std::size_t kSliceArenaBytes = std::size_t{1} << 20;
constexpr DurationUs kNoRoomUs = 5000000;      // the time until the next try, if the disk cannot hold a checkpoint
constexpr DurationUs kShortPauseUs = 1000000;  // between two checkpoints of a disk that is short of space
constexpr std::uint64_t kShortLogBytes = std::uint64_t{1}
                                         << 20;  // enough for a checkpoint if the disk is short of space
constexpr std::size_t kSliceDropped = 1024;      // about a millisecond
constexpr DurationUs kPollUs = 500000;
constexpr std::size_t kPositionSamples = 16;  // within the tombstone retention

// A string of this length, with what an allocator adds.
std::uint64_t bytes_of(const std::string& key) { return sizeof(std::string) + 16 + key.size() + key.size() / 4; }

}  // namespace

Checkpointer::Checkpointer(CoreContext* core, ExecuteStage* execute, const Reader* reader, const Position& last,
                           std::vector<std::string> dropped)
    : core_(core),
      execute_(execute),
      reader_(reader),
      last_batch_(last.batch),
      last_us_(core->environment.clock->monotonic_us()) {
  core_->metrics.without_checkpoint.begin(last_us_);
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    if (i % kSliceDropped == 0) dropped_.push_back({last.tombstone_floor, {}});
    dropped_bytes_ += bytes_of(dropped[i]);
    dropped_.back().keys.push_back(std::move(dropped[i]));
  }
}

void Checkpointer::request(std::function<void()> done) {
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(std::move(done));
  }
  core_->checkpoint_worker->notify();
}

bool Checkpointer::wanted(TimeUs now) {
  {
    const std::scoped_lock lock(mutex_);
    if (!requests_.empty()) return true;
  }
  if (now < no_room_until_us_) return false;
  if (core_->answered.batch() == last_batch_.load(std::memory_order_relaxed)) return false;
  const LogUsage usage = core_->log->usage();
  return now - last_us_ >= core_->options.checkpoint_interval_us ||
         usage.bytes_since_checkpoint >= core_->options.checkpoint_log_bytes ||
         (drops_wait_.load(std::memory_order_relaxed) && now - last_us_ >= kShortPauseUs) ||
         (usage.short_of_space && usage.bytes_since_checkpoint >= kShortLogBytes && now - last_us_ >= kShortPauseUs);
}

void Checkpointer::begin(TimeUs now) {
  {
    const std::scoped_lock lock(mutex_);
    serving_.swap(requests_);
  }
  // Everything up to this position is in the session table. Every key that was written up to this position is dirty in
  // the engine. The access table is that of exactly this position, because to make its changes twice may give another
  // table.
  const Access::Table access = core_->access.answered(core_->answered, &covers_);
  const Status status = core_->log->checkpoint_begin();
  if (status.code() == StatusCode::resource_exhausted) {
    no_room_until_us_ = now + kNoRoomUs;
    core_->metrics.checkpoints_put_off.fetch_add(1, std::memory_order_relaxed);
    for (const auto& done : std::exchange(serving_, {})) done();
    return;
  }
  if (!status.ok()) return core_->fail(status);
  access_ = encode_table(*access);
  capturing_ = true;
  began_us_ = now;
  core_->metrics.checkpoints.begin(now);
  made_ = {.batch = covers_.batch};
  if (core_->events.checkpoint_begins) core_->events.checkpoint_begins(covers_.batch);
  execute_->post(nullptr, [this, covered_floor = covers_.tombstone_floor] {
    covered_floor_ = covered_floor;
    choose_floor();
    auto slice = std::make_unique<Slice>();
    drop_tombstones(slice.get());
    capture(slice.get(), core_->engine->dirty_count());
    captured_.push(std::move(slice));
    core_->checkpoint_worker->notify();
  });
}

void Checkpointer::ask(std::size_t left) {
  execute_->post(nullptr, [this, left] {
    auto slice = std::make_unique<Slice>();
    drop_tombstones(slice.get());
    capture(slice.get(), left);
    captured_.push(std::move(slice));
    core_->checkpoint_worker->notify();
  });
}

void Checkpointer::choose_floor() {
  if (core_->options.read_only) return;
  const Position now = core_->executed.get();
  const DurationUs retention = core_->options.tombstone_retention_us;
  while (!positions_.empty() && positions_.front().time_us <= now.time_us - retention) {
    wanted_floor_ = positions_.front().next_version - 1;
    positions_.pop_front();
  }
  stored_floor_ = last_begin_.next_version - 1;
  last_begin_ = now;
  // Added only now: a tombstone may be dropped once the checkpoint that begins here holds it, not before.
  if (positions_.empty() || now.time_us - positions_.back().time_us >= retention / DurationUs{kPositionSamples}) {
    positions_.push_back(now);
  }
}

// How many there are beyond --tombstones-max.
std::size_t Checkpointer::too_many_tombstones() const {
  const std::size_t count = core_->engine->stats().tombstones;
  return count - std::min<std::size_t>(count, core_->options.tombstones_max);
}

// One step. It drops a bounded number of keys from the table, and another from the stored state. The next batch logs
// the floor that the table reached, so that a replay drops the same keys. If too many keys wait to be removed from the
// stored state, the next checkpoint comes soon, and drops more.
void Checkpointer::drop_tombstones(Slice* slice) {
  engine::Engine& engine = *core_->engine;
  const auto ripe = [this] { return !dropped_.empty() && dropped_.front().floor <= covered_floor_; };
  for (; ripe() && slice->dropped.size() < kSliceDropped; dropped_.pop_front()) {
    for (std::string& key : dropped_.front().keys) {
      dropped_bytes_ -= bytes_of(key);
      if (engine.find(key).cell == Cell{}) slice->dropped.push_back(std::move(key));
    }
  }
  // First those whose retention is over. If there are still too many, the oldest ones go before that.
  const Version retained = reader_->drop_floor(wanted_floor_);
  const auto may_go_early = [&] {
    return !core_->options.read_only && stored_floor_ > wanted_floor_ && too_many_tombstones() > 0;
  };
  const bool goes_early = retained <= engine.tombstone_floor() && may_go_early();
  const Version floor = goes_early ? reader_->drop_floor(stored_floor_) : retained;
  const auto has_room = [this] { return dropped_bytes() < core_->options.dropped_bytes_max; };
  if (floor > engine.tombstone_floor() && has_room()) {
    Dropped step;
    const auto keep = [this, &step](std::string_view key) {
      step.keys.emplace_back(key);
      dropped_bytes_ += bytes_of(step.keys.back());
    };
    engine.drop_tombstones(floor, keep, goes_early ? std::min(too_many_tombstones(), kSliceDropped) : kSliceDropped);
    step.floor = engine.tombstone_floor();
    if (!step.keys.empty()) dropped_.push_back(std::move(step));
  }
  const bool has_more = goes_early ? floor > engine.tombstone_floor() && may_go_early()
                                   : floor > engine.tombstone_floor() || may_go_early();
  drops_wait_.store(has_more && !has_room(), std::memory_order_relaxed);
  slice->drops_left = ripe() || (has_more && has_room());
}

void Checkpointer::capture(Slice* slice, std::size_t left) {
  slice->executed = core_->executed.batch();
  struct Place {
    std::size_t key, key_bytes, value, value_bytes;
  };
  std::vector<Place> places;
  slice->arena.reserve(kSliceArenaBytes);
  const std::function<void(const engine::RecordView&)> copy = [slice, &places](const engine::RecordView& record) {
    StoredRecord stored;
    stored.version = version_of(record.cell.tag);
    stored.type = type_of(record.cell.tag);
    stored.expires_us = record.expires_us;
    if (stored.type == ValueType::integer) stored.integer = static_cast<std::int64_t>(record.cell.word);
    places.push_back(
        {slice->arena.size(), record.key.size(), slice->arena.size() + record.key.size(), record.bytes.size()});
    slice->arena.append(record.key).append(record.bytes);
    slice->records.push_back(stored);
  };
  const std::size_t records_max = std::min(left, kSliceRecords);
  std::size_t taken = 0;
  while (taken < records_max && slice->arena.size() < kSliceArenaBytes && core_->engine->take_dirty(1, copy) > 0) {
    ++taken;
  }
  const std::string_view arena = slice->arena;
  for (std::size_t i = 0; i < places.size(); ++i) {
    slice->records[i].key = arena.substr(places[i].key, places[i].key_bytes);
    slice->records[i].bytes = arena.substr(places[i].value, places[i].value_bytes);
  }
  slice->left = taken == 0 ? 0 : left - std::min(left, taken);
}

bool Checkpointer::write(const Slice& slice) {
  std::vector<std::string_view> dropped(slice.dropped.begin(), slice.dropped.end());
  Status status = dropped.empty() ? Status() : core_->log->checkpoint_drop(dropped);
  if (status.ok() && !slice.records.empty()) status = core_->log->checkpoint_records(slice.records);
  if (!status.ok()) core_->fail(status);
  made_.records += slice.records.size();
  made_.removed += dropped.size();
  return status.ok();
}

void Checkpointer::end(TimeUs now) {
  fail_point("core.checkpoint.before_end");
  RecoveredPosition covers;
  covers.batch = covers_.batch;
  covers.checkpoint_batch = covers_.batch;
  covers.next_version = covers_.next_version;
  covers.tombstone_floor = covers_.tombstone_floor;
  covers.time_us = covers_.time_us;
  covers.state_hash = covers_.state_hash;
  // A session that is opened, answered or closed during the walk is found in either state. That change is in a batch
  // after `covers_`. So the log is replayed over it, and replay skips what is already there.
  Status status = core_->sessions.walk([this](const StoredSession& session) {
    ++made_.sessions;
    return core_->log->checkpoint_session(session);
  });
  if (status.ok()) status = core_->log->checkpoint_end(covers, access_);
  const std::uint64_t log_bytes = core_->log->usage().log_bytes;
  if (status.ok()) status = core_->log->trim(covers_.time_us);
  if (!status.ok()) return core_->fail(status);
  tell_made(log_bytes);
  access_ = std::string();
  capturing_ = false;
  last_us_ = now;
  note_end();
  last_batch_.store(covers_.batch, std::memory_order_release);
  for (const auto& done : std::exchange(serving_, {})) done();
}

void Checkpointer::note_end() {
  const TimeUs now = core_->environment.clock->monotonic_us();
  core_->metrics.checkpoint.add_time(began_us_, now);
  core_->metrics.checkpoints.end();
  core_->metrics.without_checkpoint.begin(now);
}

// `log_bytes`: before the trim. Meanwhile batches are appended.
void Checkpointer::tell_made(std::uint64_t log_bytes) {
  if (!core_->events.checkpoint_made) return;
  const LogUsage usage = core_->log->usage();
  made_.took_us = core_->environment.clock->monotonic_us() - began_us_;
  made_.kept_log_bytes = usage.log_bytes;
  made_.trimmed_bytes = log_bytes - std::min(log_bytes, usage.log_bytes);
  made_.first_batch = usage.first_batch;
  core_->events.checkpoint_made(made_);
}

TimeUs Checkpointer::step() {
  const TimeUs now = core_->environment.clock->monotonic_us();
  if (core_->stopped.load()) return kNever;
  if (!capturing_) {
    if (wanted(now)) begin(now);
    return now + kPollUs;
  }
  if (waiting_ == nullptr) {
    auto slices = captured_.take_all();  // at most one: the next slice is requested when this one is written
    if (slices.empty()) return kNever;
    waiting_ = std::move(slices.front());
    core_->when_answered(waiting_->executed, [this] { core_->checkpoint_worker->notify(); });
  }
  if (core_->durable.batch() < waiting_->executed) return kNever;
  const std::unique_ptr<Slice> slice = std::move(waiting_);
  if (!write(*slice)) return kNever;
  if (slice->left > 0 || slice->drops_left) {
    ask(slice->left);
    return kNever;
  }
  end(now);
  return now + kPollUs;
}

}  // namespace kilokv::server
