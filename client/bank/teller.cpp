// Role: see teller.hpp.
#include "client/bank/teller.hpp"

#include <cstdio>
#include <utility>

#include "client/measure/clock.hpp"

namespace kilokv::bank {
namespace {

constexpr Cents kAmountMax = 5'000;
constexpr Cents kTooMuch = 100'000'000'000;
constexpr std::uint64_t kHopelessWaitUs = 300'000;
constexpr std::uint64_t kHopelessEvery = 16;  // rounds
constexpr std::uint32_t kWaitingMax = 64;

Kind kind_of(Activity activity) {
  switch (activity) {
    case Activity::early_withdrawal:
    case Activity::hopeless_wait: return Kind::withdrawal;
    case Activity::deposit: return Kind::deposit;
    case Activity::transfer:
    case Activity::pay_hot:
    case Activity::salary:
    case Activity::overdraft:
    case Activity::to_nobody: return Kind::transfer;
  }
  return Kind::transfer;
}

Ending ending_of(const Movement& movement, const client::ResultView& result) {
  switch (refusal_of(movement, result)) {
    case Refusal::none: return Ending::made;
    case Refusal::expired: return Ending::expired;
    default: return Ending::refused;
  }
}

}  // namespace

Branch::Branch(const std::string& name, std::uint32_t customer_count, std::uint32_t clients)
    : customers(customer_count) {
  const auto numbered = [&name](const char* what, std::uint32_t number) {
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%05u", number);
    return name + "-" + what + digits;
  };
  for (std::uint32_t i = 0; i < customers; ++i) accounts.push_back(numbered("customer-", i));
  accounts.push_back(name + "-hot");
  accounts.push_back(name + "-empty");
  for (std::uint32_t i = 0; i < clients; ++i) accounts.push_back(numbered("pocket-", i));
}

Teller::Teller(const TellerOptions& options, const Branch* branch, Clipboard* clipboard,
               std::unique_ptr<client::Session> session)
    : options_(options),
      branch_(branch),
      clipboard_(clipboard),
      random_(options.seed + options.place),
      ids_(options.tag),
      books_(branch->accounts.size()),
      session_(std::move(session)) {}

void Teller::run() {
  while (!clipboard_->closing.load(std::memory_order_relaxed)) round();
  if (uncovered_ != 0) send({make(Activity::deposit, uncovered_)});
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_ == 0; });
}

Books Teller::take_books() {
  const std::lock_guard lock(mutex_);
  return std::move(books_);
}

void Teller::round() {
  const Cents in_advance = random_.between(1, kAmountMax);
  send_waiting(make(Activity::early_withdrawal, in_advance));
  if (rounds_ % kHopelessEvery == 0) send_waiting(make(Activity::hopeless_wait, kAmountMax));
  tasks_.clear();
  if (uncovered_ != 0) tasks_.push_back(make(Activity::deposit, uncovered_));
  uncovered_ = in_advance;
  tasks_.push_back(make(rounds_ % 2 == 0 ? Activity::overdraft : Activity::to_nobody, kTooMuch));
  while (tasks_.size() < options_.request_transactions) {
    tasks_.push_back(make(draw_activity(), random_.between(1, kAmountMax)));
  }
  send(tasks_);
  ++rounds_;
}

// The hot account pays out as much as it gets, so that money circulates however long the demo runs.
Activity Teller::draw_activity() {
  switch (random_.below(8)) {
    case 0: return Activity::pay_hot;
    case 1: return Activity::salary;
    default: return Activity::transfer;
  }
}

Teller::Task Teller::make(Activity activity, Cents amount) {
  Task task;
  task.activity = activity;
  task.account = random_.below(branch_->customers);
  task.counterpart = (task.account + 1 + random_.below(branch_->customers - 1)) % branch_->customers;
  if (activity == Activity::early_withdrawal || activity == Activity::deposit) {
    task.account = branch_->pocket(options_.place);
  }
  if (activity == Activity::hopeless_wait) task.account = branch_->empty();
  if (activity == Activity::pay_hot) task.counterpart = branch_->hot();
  if (activity == Activity::salary) task.account = branch_->hot();
  task.movement.kind = kind_of(activity);
  task.movement.account = branch_->accounts[task.account];
  task.movement.counterpart = branch_->accounts[task.counterpart];
  if (activity == Activity::to_nobody) task.movement.counterpart = "nobody";
  task.movement.amount = amount;
  if (activity == Activity::early_withdrawal)
    task.movement.wait_us = static_cast<std::uint64_t>(options_.give_up_after_us);
  if (activity == Activity::hopeless_wait) task.movement.wait_us = kHopelessWaitUs;
  return task;
}

void Teller::append(const Task& task, client::Batch* batch) {
  writer_.append(task.movement, ids_.next(entry_clock_us()), batch);
}

void Teller::send_waiting(const Task& task) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ < kWaitingMax; });
    ++waiting_;
  }
  batch_.clear();
  append(task, &batch_);
  const std::int64_t sent_us = bench::steady_now_us();
  const auto on_progress = [this, task, sent_us](const client::Progress& progress) {
    const std::int64_t now_us = bench::steady_now_us();
    for (const std::uint32_t index : progress.indices) record(task, progress.results.at(index), now_us - sent_us);
    if (!progress.done) return;
    if (progress.error) record_unknown(task, progress.error);
    const std::lock_guard lock(mutex_);
    --waiting_;
    changed_.notify_one();
  };
  client::CallOptions call;
  call.timeout_us = 2 * static_cast<std::uint64_t>(options_.give_up_after_us);
  session_->execute_async(batch_, on_progress, call);
}

void Teller::send(const std::vector<Task>& tasks) {
  batch_.clear();
  for (const Task& task : tasks) append(task, &batch_);
  const std::int64_t sent_us = bench::steady_now_us();
  client::CallOptions call;
  call.timeout_us = static_cast<std::uint64_t>(options_.give_up_after_us);
  const auto answer = session_->execute(batch_, call);
  if (!answer) {
    for (const Task& task : tasks) record_unknown(task, answer.error());
    return;
  }
  const std::int64_t latency_us = bench::steady_now_us() - sent_us;
  for (std::size_t i = 0; i < tasks.size(); ++i) record(tasks[i], answer->results.at(i), latency_us);
  const std::lock_guard lock(mutex_);
  books_.sent_again += answer->attempts - 1;
}

void Teller::record(const Task& task, const client::ResultView& result, std::int64_t latency_us) {
  const Movement& movement = task.movement;
  const Ending ending = ending_of(movement, result);
  clipboard_->answered(bench::steady_now_us(), 1);
  const std::lock_guard lock(mutex_);
  ActivityCount& count = books_.of(task.activity);
  ++count.endings[static_cast<std::size_t>(ending)];
  count.latency_us.record(latency_us);
  if (!expected(task.activity, ending) && books_.first_surprise.empty()) {
    books_.first_surprise = std::string(to_string(task.activity)) + ": " + client::to_string(result.outcome) + " " +
                            explain(movement, result);
  }
  if (ending != Ending::made) return;
  if (result.batch > result.admitted_batch) ++count.waited;
  const bool receives = movement.kind == Kind::deposit;
  books_.change[task.account] += receives ? movement.amount : -movement.amount;
  if (movement.kind == Kind::transfer) books_.change[task.counterpart] += movement.amount;
  if (movement.kind == Kind::deposit) books_.paid_in += movement.amount;
  if (movement.kind == Kind::withdrawal) books_.paid_out += movement.amount;
}

void Teller::record_unknown(const Task& task, const client::Error& error) {
  const std::lock_guard lock(mutex_);
  ++books_.of(task.activity).endings[static_cast<std::size_t>(Ending::unknown)];
  if (books_.first_surprise.empty()) {
    books_.first_surprise =
        std::string(to_string(task.activity)) + ": " + client::to_string(error.code) + ": " + error.message;
  }
}

}  // namespace kilokv::bank
