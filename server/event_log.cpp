#include "server/event_log.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "server/core/one_line.hpp"
#include "server/core/trace_parent.hpp"

namespace kilokv::server {
namespace {

double seconds(DurationUs us) { return static_cast<double>(us) * 1e-6; }

// The functions below return fields of a line, each with a blank before it. Empty: there is nothing to say.

std::string session_field(const std::optional<SessionId>& session) {
  return session ? " session=" + shown(*session) : std::string();
}

std::string trace_fields(const TraceParent& trace) {
  if (!trace.present()) return {};
  return " trace=" + trace_text(trace) + " span=" + span_text(trace);
}

std::string request_fields(std::string_view client, const std::optional<SessionId>& session, std::uint64_t number) {
  std::string text = " client=\"" + one_line(client) + '"' + session_field(session);
  if (session) text += " request=" + std::to_string(number);
  return text;
}

const char* name_of(engine::Outcome outcome) {
  switch (outcome) {
    case engine::Outcome::undecided: return "undecided";
    case engine::Outcome::committed: return "COMMITTED";
    case engine::Outcome::guard_failed: return "GUARD_FAILED";
    case engine::Outcome::wait_expired: return "WAIT_EXPIRED";
    case engine::Outcome::overflow: return "OVERFLOW";
    case engine::Outcome::type_mismatch: return "TYPE_MISMATCH";
    case engine::Outcome::postponed: return "postponed";
  }
  return "";
}

const char* verb_of(SessionEntry::Kind kind) {
  switch (kind) {
    case SessionEntry::Kind::opened: return "opened";
    case SessionEntry::Kind::closed: return "closed";
    case SessionEntry::Kind::attached: return "gave a new holder to";
    case SessionEntry::Kind::results: return "stored results of";
  }
  return "";
}

// A function that calls both.
template <class Function>
Function both(Function first, std::type_identity_t<Function> second) {
  if (!first) return second;
  return [first = std::move(first), second = std::move(second)](const auto&... arguments) {
    first(arguments...);
    second(arguments...);
  };
}

// Only the owner may read it. Returns what went wrong; empty: nothing.
std::string write_new_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return std::generic_category().message(errno);
  std::string problem;
  for (std::size_t written = 0; written < text.size() && problem.empty();) {
    const ssize_t count = ::write(file, text.data() + written, text.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      problem = std::generic_category().message(errno);
    }
  }
  if (problem.empty() && ::fsync(file) != 0) problem = std::generic_category().message(errno);
  ::close(file);
  return problem;
}

}  // namespace

EventLog::EventLog(LogKeys keys, std::string data_dir, std::chrono::steady_clock::duration recovery_interval)
    : keys_(keys),
      data_dir_(std::move(data_dir)),
      recovery_interval_(recovery_interval),
      next_progress_(std::chrono::steady_clock::now() + recovery_interval) {}

void EventLog::add_to(StorageOptions* storage) {
  storage->on_created = both(storage->on_created, [](const std::string& directory) {
    spdlog::warn(
        "kilokvd has made a new, empty database data_dir=\"{}\" hint=\"if the data should be there already, check "
        "--data-dir; with --create never, this start would have failed\"",
        one_line(directory));
  });
  storage->on_checkpoint_put_off = both(storage->on_checkpoint_put_off, [this](const Status& why) {
    put_off_ = true;
    spdlog::warn("kilokvd makes no checkpoints until the disk has room reason=\"{}\"", one_line(why.message()));
  });
  storage->on_open_to_others = both(storage->on_open_to_others, [](const std::string& path) {
    spdlog::warn(
        "kilokvd leaves a path open to others path=\"{}\" hint=\"it belongs to another user, or has other files, too: "
        "give the database a folder of its own, with the mode 0700\"",
        one_line(path));
  });
  storage->on_archive_problem = both(storage->on_archive_problem, [](const std::string& why, bool ended) {
    spdlog::error("kilokvd archive {} reason=\"{}\"", ended ? "ended" : "has a problem", one_line(why));
  });
}

void EventLog::add_to(DatabaseEvents* events) {
  events->recovering = both(events->recovering, [this](const RecoveryProgress& progress) { recovers(progress); });
  events->shadow_mismatch =
      both(events->shadow_mismatch, [this](BatchNumber number, const Status& difference, const std::string& batch) {
        shadow_mismatch(number, difference, batch);
      });
  events->shadow_checked = [this](BatchNumber batch, bool too_large) { shadow_checked(batch, too_large); };
  events->batch_executed = [](const BatchReport& report) {
    spdlog::debug(
        "kilokvd executed a batch batch={} transactions={} postponed={} writes={} strategy={} on_device={} "
        "execution_us={}",
        report.batch, report.transactions, report.postponed, report.writes, report.strategy, report.on_device,
        report.execution_us);
  };
  events->batches_appended = [](const AppendReport& report) {
    spdlog::debug("kilokvd appended batches last_batch={} batches={} took_us={}", report.last_batch, report.batches,
                  report.took_us);
  };
  events->sync_slow = [this](const AppendReport& report) { sync_slow(report); };
  events->sync_hangs = [](DurationUs for_us) {
    spdlog::error(
        "kilokvd waits for a sync of the disk, which has not ended seconds={:.1f} hint=\"no client gets an answer "
        "meanwhile; look at the disk\"",
        seconds(for_us));
  };
  events->session_changed = [](const SessionEntry& entry) {
    std::string more = entry.user.empty() ? "" : " user=\"" + one_line(entry.user) + '"';
    if (entry.kind == SessionEntry::Kind::attached) more = " holder=" + std::to_string(entry.identity.holder);
    spdlog::debug("kilokvd {} a session{}{}", verb_of(entry.kind), session_field(entry.identity.session), more);
  };
  events->checkpoint_begins = [](BatchNumber batch) { spdlog::debug("kilokvd begins a checkpoint batch={}", batch); };
  events->checkpoint_made = [this](const CheckpointReport& report) { checkpoint_made(report); };
  events->transaction_slow = [this](const SlowTransaction& slow, std::uint64_t left_out) {
    transaction_slow(slow, left_out);
  };
  add_requests(events);
}

void EventLog::add_requests(DatabaseEvents* events) {
  events->tells_requests = [] { return spdlog::default_logger_raw()->should_log(spdlog::level::trace); };
  events->request_admitted = [](const RequestReport& report) {
    spdlog::trace("kilokvd admitted a request{} transactions={}{}",
                  request_fields(report.client, report.session, report.number), report.transactions,
                  trace_fields(report.trace));
  };
  events->request_answered = [](const RequestReport& report) {
    spdlog::trace("kilokvd answered a request{} transactions={} took_us={}{}",
                  request_fields(report.client, report.session, report.number), report.transactions, report.took_us,
                  trace_fields(report.trace));
  };
  events->transaction_parked = [this](const ParkedReport& report) {
    spdlog::trace("kilokvd parked a transaction{} index={}{} deadline_us={}",
                  request_fields(report.client, report.session, report.request), report.index,
                  guard_fields(report.guard, report.guards_range, report.key), report.deadline_us);
  };
}

// The guard for which a transaction waits, and its key. A guard of time may have none.
std::string EventLog::guard_fields(std::uint32_t guard, bool guards_range, std::string_view key) const {
  std::string text = " guard=" + std::to_string(guard);
  const bool has_key = guards_range || !key.empty();
  if (has_key) text += shown_key(guards_range ? "from_key" : "key", key, keys_, secret_);
  return text;
}

void EventLog::recovers(const RecoveryProgress& progress) {
  const auto now = std::chrono::steady_clock::now();
  const bool is_due = now >= next_progress_;
  if (is_due) next_progress_ = now + recovery_interval_;
  const std::string most = progress.records_most == 0 ? "" : " records_most=" + std::to_string(progress.records_most);
  spdlog::log(is_due ? spdlog::level::info : spdlog::level::debug, "kilokvd recovers step={} records={}{} batch={}",
              progress.counting     ? "counting"
              : progress.batch == 0 ? "checkpoint"
                                    : "log",
              progress.records, most, progress.batch);
}

void EventLog::recovered(const DatabaseStatus& status) {
  spdlog::info(
      "kilokvd recovered checkpoint_batch={} batch={} replayed_batches={} records={} sessions={} log_bytes={} "
      "seconds={:.3f}",
      status.checkpoint_batch, status.durable_batch, status.durable_batch - status.checkpoint_batch,
      status.engine.records, status.sessions, status.log.log_bytes, status.recovery_seconds);
}

// The batch has keys and values. Where the log may not have them, they go where the data is.
void EventLog::shadow_mismatch(BatchNumber number, const Status& difference, const std::string& batch) const {
  if (keys_ == LogKeys::full) {
    spdlog::critical(
        "kilokvd executed a batch wrongly; the lines below are the state before it, and the batch batch={} "
        "difference=\"{}\"\n{}",
        number, one_line(difference.message()), batch);
    return;
  }
  const std::string path = data_dir_ + "/wrong-batch-" + std::to_string(number) + ".txt";
  const std::string problem = write_new_file(path, difference.message() + '\n' + batch);
  if (problem.empty()) {
    spdlog::critical("kilokvd executed a batch wrongly, and wrote the batch to a file batch={} batch_file=\"{}\"",
                     number, one_line(path));
  } else {
    spdlog::critical(
        "kilokvd executed a batch wrongly, and cannot write it to a file batch={} batch_file=\"{}\" error=\"{}\"",
        number, one_line(path), one_line(problem));
  }
}

void EventLog::shadow_checked(BatchNumber batch, bool too_large) {
  if (!too_large) return spdlog::debug("kilokvd checked a batch by the referee batch={}", batch);
  if (const std::uint64_t times = skipped_checks_.count()) {
    spdlog::info(
        "kilokvd did not check batches by the referee, because they were larger than --shadow-records-max or "
        "--shadow-bytes-max times={} last_batch={}",
        times, batch);
  }
}

void EventLog::sync_slow(const AppendReport& report) {
  if (const std::uint64_t times = slow_syncs_.count()) {
    spdlog::warn("kilokvd had slow syncs of the disk times={} last_seconds={:.3f} last_batch={} batches={}", times,
                 seconds(report.took_us), report.last_batch, report.batches);
  }
}

void EventLog::checkpoint_made(const CheckpointReport& report) {
  if (std::exchange(put_off_, false)) spdlog::info("kilokvd makes checkpoints again, because the disk has room");
  spdlog::info("kilokvd made a checkpoint batch={} records={} removed={} sessions={} seconds={:.3f}", report.batch,
               report.records, report.removed, report.sessions, seconds(report.took_us));
  if (report.trimmed_bytes == 0) return;
  spdlog::info("kilokvd trimmed the log first_batch={} trimmed_bytes={} kept_bytes={}", report.first_batch,
               report.trimmed_bytes, report.kept_log_bytes);
}

// To wait for a guard is slow by intention.
void EventLog::transaction_slow(const SlowTransaction& slow, std::uint64_t left_out) const {
  const bool waited = slow.reason == SlowReason::waiting;
  std::string guard;
  if (slow.guard != engine::kNone) guard = guard_fields(slow.guard, slow.guards_range, slow.guard_key);
  spdlog::log(
      waited ? spdlog::level::info : spdlog::level::warn,
      "kilokvd slow transaction reason={} total_us={} queued_us={} waited_us={} execution_us={} sync_us={} "
      "answer_us={}{}{} "
      "index={} transactions={} outcome={} batch={} admitted_batch={} batch_transactions={} reads={}{} left_out={}",
      to_string(slow.reason), slow.total_us, slow.queued_us, slow.waited_us, slow.execution_us, slow.sync_us,
      slow.answer_us, request_fields(slow.client, slow.session, slow.request), guard, slow.index, slow.transactions,
      name_of(slow.outcome), slow.batch, slow.admitted_batch, slow.batch_transactions, slow.reads,
      trace_fields(slow.trace), left_out);
}

}  // namespace kilokv::server
