// Role: see loader.hpp.
#include "client/bench/loader.hpp"

#include <condition_variable>
#include <mutex>

#include "client/command_line/interrupt.hpp"
#include "client/measure/clock.hpp"
#include "client/measure/steady_scan.hpp"

namespace kilokv::bench {
namespace {

constexpr std::size_t kTransactionsMax = 4096;  // in one request
constexpr std::size_t kBytesMax = 1 << 20;      // in one request, keys and values: well below a server's message limit

class Loader {
 public:
  Loader(client::Session* session, const RunOptions& options) : session_(session), options_(options) {}

  void add(const engine::InitialRecord& record) {
    batch_.begin();
    const client::Key key = batch_.key(record.key);
    batch_.guard_absent(key);
    if (record.type == ValueType::bytes) {
      batch_.put(key, record.bytes);
    } else {
      batch_.put(key, record.integer);
    }
    batch_.end();
    bytes_ += record.key.size() + record.bytes.size();
    if (batch_.size() >= kTransactionsMax || bytes_ >= kBytesMax) flush();
  }

  client::Expected<LoadReport> finish() {
    if (!batch_.empty()) flush();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_flight_ == 0; });
    if (error_) return error_;
    return report_;
  }

 private:
  void flush() {
    bytes_ = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return in_flight_ < options_.in_flight; });
      if (!error_ && client::interrupt::received() != 0)
        error_ = make_error(client::ErrorCode::cancelled, "loading was ended");
      if (error_) return batch_.clear();
      ++in_flight_;
    }
    const client::CallOptions call{.timeout_us = static_cast<std::uint64_t>(options_.give_up_after_us),
                                   .encoding = options_.encoding};
    session_->execute_async(
        batch_, [this](const client::Progress& progress) { on_progress(progress); }, call);
    batch_.clear();
  }

  void on_progress(const client::Progress& progress) {
    const std::lock_guard lock(mutex_);
    for (const std::uint32_t index : progress.indices) {
      const bool written = progress.results.outcome(index) == client::Outcome::committed;
      ++(written ? report_.written : report_.there_already);
    }
    if (!progress.done) return;
    if (progress.error && !error_) error_ = progress.error;
    --in_flight_;
    changed_.notify_one();
  }

  client::Session* session_;
  const RunOptions& options_;
  client::Batch batch_;
  std::size_t bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t in_flight_ = 0;
  LoadReport report_;
  client::Error error_;
};

}  // namespace

client::Expected<LoadReport> load_initial_records(client::Session* session, const engine::Workload& workload,
                                                  const RunOptions& options) {
  const std::int64_t start_us = steady_now_us();
  Loader loader(session, options);
  workload.for_each_initial([&](const engine::InitialRecord& record) { loader.add(record); });
  auto report = loader.finish();
  if (report) report->elapsed_us = steady_now_us() - start_us;
  return report;
}

}  // namespace kilokv::bench
