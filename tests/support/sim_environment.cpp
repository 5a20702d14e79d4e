#include "tests/support/sim_environment.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {

void SimClock::advance(DurationUs us) {
  KILOKV_CHECK(us >= 0);
  wall_us_ += us;
  monotonic_us_ += us;
}

class SimScheduler::SimWorker : public Worker {
 public:
  SimWorker(SimScheduler* scheduler, std::string name, std::function<TimeUs()> step)
      : name_(std::move(name)), scheduler_(scheduler), step_(std::move(step)) {
    scheduler_->workers_.push_back(this);
  }
  ~SimWorker() override { SimWorker::stop(); }

  void stop() override {
    KILOKV_CHECK(!running_);
    std::erase(scheduler_->workers_, this);
  }

  void notify() override { due_ = true; }

  bool is_due(TimeUs now_us) const {
    return (due_ || timer_us_ <= now_us) && (scheduler_->held_.empty() || name_ != scheduler_->held_);
  }
  TimeUs timer_us() const { return timer_us_; }

  void run() {
    due_ = false;
    running_ = true;
    timer_us_ = step_();
    running_ = false;
  }

 private:
  const std::string name_;
  SimScheduler* scheduler_;
  const std::function<TimeUs()> step_;
  bool due_ = false;
  bool running_ = false;
  TimeUs timer_us_ = kNever;
};

std::unique_ptr<Worker> SimScheduler::spawn(std::string name, std::function<TimeUs()> step) {
  return std::make_unique<SimWorker>(this, std::move(name), std::move(step));
}

bool SimScheduler::run_one() {
  due_.clear();
  for (SimWorker* worker : workers_) {
    if (worker->is_due(clock_->monotonic_us())) {
      due_.push_back(worker);
    }
  }
  if (due_.empty()) {
    return false;
  }
  due_[random_() % due_.size()]->run();
  return true;
}

std::uint64_t SimScheduler::run_until_idle(std::uint64_t steps_max) {
  std::uint64_t steps = 0;
  while (run_one()) {
    KILOKV_CHECK(++steps <= steps_max);
  }
  return steps;
}

void SimScheduler::run_for(DurationUs us) {
  const TimeUs end_us = clock_->monotonic_us() + us;
  for (;;) {
    run_until_idle();
    const TimeUs next_us = std::min(next_timer_us(), end_us);
    if (next_us <= clock_->monotonic_us()) {
      return;
    }
    clock_->advance(next_us - clock_->monotonic_us());
  }
}

TimeUs SimScheduler::next_timer_us() const {
  TimeUs next_us = kNever;
  for (const SimWorker* worker : workers_) {
    next_us = std::min(next_us, worker->timer_us());
  }
  return next_us;
}

}  // namespace kilokv::server
