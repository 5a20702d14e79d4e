// Sessions (session_state.hpp).
#include "client/lib/src/session_state.hpp"

#include <algorithm>
#include <utility>

#include "client/lib/src/encode.hpp"
#include "client/lib/src/result_columns.hpp"
#include "client/lib/src/trace.hpp"

namespace kilokv::client {
namespace {

thread_local bool t_in_listener = false;

// A request that is sent again under the same number is applied once. So it is retried unless it was clearly refused.
bool retryable(const Error& error, bool of_stream) {
  switch (error.code) {
    case ErrorCode::none:
    case ErrorCode::cancelled:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::internal:
    case ErrorCode::unknown: return of_stream;
    case ErrorCode::unavailable: return true;
    // No delay: waiting does not help. gRPC itself sends none, for example if a message is too long.
    case ErrorCode::resource_exhausted: return error.retry_after_us != 0;
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:
    case ErrorCode::permission_denied:
    case ErrorCode::failed_precondition:
    case ErrorCode::aborted:
    case ErrorCode::unimplemented:
    case ErrorCode::data_loss:
    case ErrorCode::unauthenticated: return false;
  }
  return false;
}

// For a request that is on the wire, and whose stream ends or whose time is over before its answer comes.
void note_loss(PendingRequest* request) {
  if (request->state == PendingRequest::State::sent) request->may_have_run = true;
}

// Whether resume() may send the request again, which ended with `error`, or without one. No: it was answered, refused
// for good, or never sent. `error` is that of the request, not that of its last sending.
bool can_go_on(const Error& error) {
  return error && (error.may_have_run || (error.attempts != 0 && (!never_ran(error) || retryable(error, false))));
}

// Whether another client has attached to the session. It does not come back.
bool is_fenced(const Error& error) { return error.reason == "SESSION_FENCED"; }

// Whether the server has too many requests, of all clients or of the session, so that it would refuse others as well.
// Other refusals, such as for a full disk, are about what the request brings.
bool is_for_load(const Error& error) { return error.reason == "QUEUE_FULL" || error.reason == "SESSION_FULL"; }

}  // namespace

SessionState::SessionState(std::shared_ptr<Connection> connection, SessionIdentity identity,
                           std::uint32_t requests_in_flight_max)
    : connection_(std::move(connection)),
      link_(connection_->next()),
      id_(std::move(identity.id)),
      lease_us_(identity.lease_us),
      holder_(identity.holder),
      inherited_through_(identity.inherited_through),
      requests_in_flight_max_(std::max(requests_in_flight_max, 1u)),
      next_number_(identity.inherited_through + 1),
      acknowledged_through_(identity.acknowledged_through),
      reconnect_backoff_(connection_->options()) {}

void SessionState::start() { schedule_renewal(lease_us_ / 3); }

bool SessionState::in_listener() { return t_in_listener; }

std::uint64_t SessionState::submit(std::uint64_t number, const Batch& batch, PendingRequest::Listener listener,
                                   const CallOptions& options) {
  auto request = std::make_shared<PendingRequest>(connection_->options());
  Error error = check_batch(batch);
  if (!error) error = check_trace(options);
  if (!error) request->payload = encode_transactions(batch, options.encoding);
  request->traceparent = options.traceparent;
  request->results.columns().reset(batch.size());
  request->listener = std::move(listener);
  const std::uint64_t wait_us = error ? 0 : longest_wait_us(batch);
  request->may_wait = wait_us != 0;
  const TimePoint deadline = connection_->deadline(options, wait_us);

  Lock lock(mutex_);
  if (!t_in_listener) {
    changed_.wait(lock, [&] { return pending_.size() < requests_in_flight_max_ || ended_ || closing_; });
  }
  const bool resumed = number != 0;
  if (!resumed) {
    number = next_number_++;
  } else {
    if (!error) error = check_resumable(number);
    request->attempts = attempts_before(number);
  }
  request->number = number;
  request->may_have_run = resumed;
  request->invoke_us = monotonic_us();
  if (!error && closing_) error = make_error(ErrorCode::cancelled, "the session is closed");
  if (!error) error = ended_;
  if (error) {
    ++listeners_running_;
    connection_->timers().at(Clock::now(), [self = shared_from_this(), request, error] {
      Lock relock(self->mutex_);
      --self->listeners_running_;
      self->last_call(request, {}, error, &relock);
    });
    return number;
  }
  given_up_.erase(number);
  pending_.emplace(number, request);
  request->deadline_timer = connection_->timers().at(deadline, [weak = weak_from_this(), request] {
    if (const auto self = weak.lock()) self->on_deadline(request);
  });
  queue_.insert(number, request->may_wait);
  pump();
  return number;
}

std::uint64_t SessionState::next_to_send() const {
  return queue_.empty() ? 0 : queue_.next(promised_ || window_.has_room(Clock::now()));
}

void SessionState::leave_window(PendingRequest* request) {
  if (std::exchange(request->in_window, false)) window_.leave();
}

void SessionState::pump() {
  if (closing_ || reconnecting_ || writing_) return;
  if (next_to_send() == 0) return;
  if (stream_ == nullptr) {
    stream_ = new SessionStream(this, link_.channel);
    stream_usable_ = true;
    stream_greeted_ = stream_answered_ = false;
    stream_->start();
  }
  if (!stream_usable_) return;
  PendingRequest& request = *pending_.at(next_to_send());
  queue_.erase(request.number);
  v1::SessionRequest head;
  head.set_number(request.number);
  head.set_acknowledged_through(acknowledged_through_);
  if (!stream_greeted_) {
    head.set_session(id_);
    head.set_holder(holder_);
  }
  if (!request.traceparent.empty()) head.set_traceparent(request.traceparent);
  stream_greeted_ = true;
  writing_ = true;
  ++request.attempts;
  request.sent = true;
  request.state = PendingRequest::State::sent;
  if (!request.may_wait) {
    request.in_window = true;
    window_.take();
  }
  end_delay(&request);
  promised_ = false;
  promised_ = next_to_send() != 0;
  stream_->write(join(head, request.payload), promised_);
}

void SessionState::pump_at(TimePoint time) {
  connection_->timers().at(time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    Lock lock(self->mutex_);
    self->pump();
  });
}

void SessionState::reconnect_at(TimePoint time) {
  reconnecting_ = true;
  connection_->timers().at(time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    Lock lock(self->mutex_);
    self->reconnecting_ = false;
    self->pump();
  });
}

void SessionState::on_written(bool ok) {
  Lock lock(mutex_);
  writing_ = false;
  if (ok) pump();
}

void SessionState::on_stream_broken() {
  Lock lock(mutex_);
  stream_usable_ = false;
}

void SessionState::on_response(v1::SessionResponse* response) {
  Lock lock(mutex_);
  reconnect_backoff_.reset();
  stream_answered_ = true;
  const auto found = pending_.find(response->number());
  if (found == pending_.end()) return;  // the request was given up meanwhile, or the answer is a repetition
  const RequestPointer request = found->second;
  if (!response->has_error()) {
    receive(request, response, &lock);
    return;
  }
  const Error error = to_error(response->error());
  if (is_fenced(error) && !ended_) set_ended(error);
  if (retryable(error, false)) {
    refuse(request, error);
  } else {
    end(request, error, &lock);
  }
}

void SessionState::receive(const RequestPointer& request, v1::SessionResponse* response, Lock* lock) {
  request->in_callback = true;
  ++listeners_running_;
  lock->unlock();
  Results::Columns& results = request->results.columns();
  fresh_.clear();
  Error error;
  if (response->has_columns()) {
    error = results.add(std::unique_ptr<v1::ResultColumns>(response->release_columns()), &fresh_);
  } else if (response->has_rows()) {
    error = results.add(std::unique_ptr<v1::ResultRows>(response->release_rows()), &fresh_);
  }
  if (!error && response->last() && !results.complete()) {
    error = make_error(ErrorCode::internal, "the server ended request " + std::to_string(request->number) +
                                                " without answering all of its transactions");
  }
  request->return_us = monotonic_us();
  const bool done = results.complete() || error;
  const TimePoint now = Clock::now();
  if (!done && !fresh_.empty()) {
    t_in_listener = true;
    request->listener(*request, fresh_, false, Error{});
    t_in_listener = false;
  }
  lock->lock();
  --listeners_running_;
  request->in_callback = false;
  if (done) {
    if (std::exchange(request->in_window, false)) window_.leave_answered(now);
    if (window_refusal_ && window_.quiet(now)) window_refusal_ = Error{};
    take_out(request);
    last_call(request, fresh_, error, lock);
  } else if (request->end_error) {
    take_out(request);
    last_call(request, {}, request->end_error, lock);
  }
}

void SessionState::refuse(const RequestPointer& request, const Error& error) {
  request->refusal = error;
  if (!never_ran(error)) request->may_have_run = true;
  queue_.erase(request->number);  // the refusal may be about a sending before resume()
  connection_->timers().cancel(request->retry_timer);
  request->state = PendingRequest::State::delayed;
  ++request->refusals.count;
  request->refused_at = Clock::now();
  if (std::exchange(request->in_window, false)) {
    if (is_for_load(error)) {
      const std::chrono::microseconds delay(error.retry_after_us);
      window_refusal_ = error;
      if (window_.leave_refused(request->refused_at, delay)) pump_at(request->refused_at + delay);
    } else {
      window_.leave();
    }
  }
  request->again = request->refused_at + request->backoff.next(error.retry_after_us);
  request->retry_timer = connection_->timers().at(request->again, [weak = weak_from_this(), request] {
    if (const auto self = weak.lock()) self->on_retry(request);
  });
  pump();
}

void SessionState::end_delay(PendingRequest* request) {
  const TimePoint refused_at = std::exchange(request->refused_at, TimePoint{});
  if (refused_at == TimePoint{}) return;
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - refused_at);
  const auto waited_us = static_cast<std::uint64_t>(waited.count());
  request->refusals.asked_us += request->refusal.retry_after_us;
  request->refusals.waited_us += waited_us;
  if (waited_us < request->refusal.retry_after_us) ++request->refusals.early;
}

bool SessionState::in_flight(const RequestPointer& request) const {
  const auto found = pending_.find(request->number);
  return found != pending_.end() && found->second == request;
}

void SessionState::on_retry(const RequestPointer& request) {
  Lock lock(mutex_);
  if (!in_flight(request) || request->state != PendingRequest::State::delayed) return;
  if (Clock::now() < request->again) return;  // it was refused again before this timer was cancelled
  request->state = PendingRequest::State::queued;
  queue_.insert(request->number, request->may_wait);
  pump();
}

void SessionState::on_deadline(const RequestPointer& request) {
  Lock lock(mutex_);
  if (!in_flight(request)) return;
  note_loss(request.get());
  end(request, deadline_error(*request), &lock);
}

Error SessionState::deadline_error(const PendingRequest& request) const {
  const std::string name = "request " + std::to_string(request.number);
  Error error;
  if (!request.sent && !request.may_wait && window_refusal_ && !window_.has_room(Clock::now())) {
    error = window_refusal_;
    error.message =
        "the deadline passed before " + name + " was sent; the server had refused another: " + error.message;
  } else if (request.refusal && (!stream_answered_ || request.state != PendingRequest::State::sent)) {
    // If the server has answered on the stream, it may still work on what was sent on it.
    error = request.refusal;
    error.message =
        "the deadline passed after " + std::to_string(request.attempts) + " attempts; the last one: " + error.message;
  } else if (!request.sent && !request.may_have_run) {
    return make_error(ErrorCode::deadline_exceeded, where() + ": " + name + " was not sent within its deadline");
  } else {
    return make_error(ErrorCode::deadline_exceeded,
                      where() + ": no answer to " + name + " within its deadline; resume it to learn its results");
  }
  if (request.may_have_run && never_ran(error)) {
    error.code = ErrorCode::deadline_exceeded;
    error.message += kOtherSending;
  }
  return error;
}

void SessionState::on_stream_end(Error error) {
  Lock lock(mutex_);
  stream_ = nullptr;
  stream_usable_ = writing_ = promised_ = false;
  changed_.notify_all();
  if (closing_) return;
  if (ended_) {  // the lease was lost before: no answer will come
    queue_.clear();
    std::vector<RequestPointer> open;
    for (const auto& entry : pending_) open.push_back(entry.second);
    return end_all(open, ended_, &lock);
  }
  error = connection_->describe(std::move(error));
  if (error.code == ErrorCode::failed_precondition) set_ended(error);
  const std::vector<RequestPointer> failed = culprits(error);
  queue_.clear();
  for (const auto& [number, request] : pending_) {
    if (request->state == PendingRequest::State::delayed) continue;
    if (std::find(failed.begin(), failed.end(), request) != failed.end()) continue;
    if (request->state == PendingRequest::State::sent) request->refusal = error;
    note_loss(request.get());
    leave_window(request.get());
    request->state = PendingRequest::State::queued;
    queue_.insert(number, request->may_wait);
  }
  if (!queue_.empty()) reconnect_at(Clock::now() + reconnect_backoff_.next(error.retry_after_us));
  end_all(failed, error, &lock);
}

std::vector<SessionState::RequestPointer> SessionState::culprits(const Error& error) const {
  std::vector<RequestPointer> found;
  if (retryable(error, true)) return found;
  for (const auto& entry : pending_) {
    if (ended_ || entry.second->state == PendingRequest::State::sent) found.push_back(entry.second);
  }
  // One message was too large for gRPC. It must be the largest one. The others only shared its stream.
  if (is_too_large_for_grpc(error) && !found.empty()) {
    const auto by_size = [](const auto& a, const auto& b) { return a->payload.size() < b->payload.size(); };
    found = {*std::max_element(found.begin(), found.end(), by_size)};
  }
  return found;
}

void SessionState::end(const RequestPointer& request, const Error& error, Lock* lock) {
  if (request->in_callback) {
    request->end_error = error;
    return;
  }
  take_out(request);
  last_call(request, {}, error, lock);
}

// What is in flight hears of it from the stream. The error is about the session. So it does not say of any request
// whether it ran.
void SessionState::set_ended(const Error& error) {
  ended_ = error;
  ended_.not_run = ended_.may_have_run = false;
}

void SessionState::end_all(const std::vector<RequestPointer>& requests, const Error& error, Lock* lock) {
  for (const RequestPointer& request : requests) {
    if (!in_flight(request)) continue;
    if (!is_too_large_for_grpc(error)) note_loss(request.get());  // gRPC refused this message before the server saw it
    end(request, error, lock);
  }
}

void SessionState::take_out(const RequestPointer& request) {
  leave_window(request.get());
  queue_.erase(request->number);
  pending_.erase(request->number);
  connection_->timers().cancel(request->deadline_timer);
  connection_->timers().cancel(request->retry_timer);
  attempts_[request->number % kAttemptsKept] = {request->number, request->attempts, false};
  changed_.notify_all();
  pump();  // the window may have room now
}

// Every request ends here. So this is the place where the error of the last sending becomes that of the request.
void SessionState::last_call(const RequestPointer& request, const std::vector<std::uint32_t>& fresh, Error error,
                             Lock* lock) {
  if (error && request->may_have_run) {
    error = of_many_sendings(std::move(error));
  } else if (error && request->attempts == 0) {
    error.not_run = true;
  }
  error.request = request->number;
  error.attempts = request->attempts;
  const bool resumable = can_go_on(error);
  if (!resumable) ending_.insert(request->number);
  ++listeners_running_;
  lock->unlock();
  t_in_listener = true;
  request->listener(*request, fresh, true, error);
  t_in_listener = false;
  lock->lock();
  if (!resumable) ending_.erase(ending_.find(request->number));
  acknowledge(request->number, resumable);
  --listeners_running_;
  changed_.notify_all();
}

Error SessionState::check_resumable(std::uint64_t number) const {
  if (number < next_number_ && !pending_.contains(number) && !calls_.contains(number) &&
      number > acknowledged_through_ && !ended_beyond_.contains(number) && !ending_.contains(number)) {
    return {};
  }
  return make_error(ErrorCode::failed_precondition, "request " + std::to_string(number) +
                                                        " cannot be resumed: it is in flight, new, or ended for good");
}

Expected<std::uint64_t> SessionState::begin_call(std::uint64_t number) {
  Lock lock(mutex_);
  if (closing_) return make_error(ErrorCode::cancelled, "the session is closed");
  if (ended_) return ended_;
  if (number == 0) {
    number = next_number_++;
  } else if (Error error = check_resumable(number)) {
    return error;
  }
  given_up_.erase(number);
  calls_.insert(number);
  return number;
}

void SessionState::end_call(std::uint64_t number, std::uint32_t attempts, const Error& error, bool session_gone) {
  Lock lock(mutex_);
  calls_.erase(number);
  attempts_[number % kAttemptsKept] = {number, attempts, true};
  acknowledge(number, can_go_on(error));
  if (session_gone && !ended_) set_ended(error);
  changed_.notify_all();
}

bool SessionState::closed() const {
  Lock lock(mutex_);
  return closing_;
}

bool SessionState::made_by_calls(std::uint64_t number) const {
  Lock lock(mutex_);
  const Attempts& kept = attempts_[number % kAttemptsKept];
  return kept.number == number && kept.by_calls;
}

std::uint64_t SessionState::acknowledged_through() const {
  Lock lock(mutex_);
  return acknowledged_through_;
}

void SessionState::acknowledge(std::uint64_t number, bool can_go_on) {
  // The end of a resume() that was refused changes nothing.
  if (pending_.contains(number) || calls_.contains(number) || number >= next_number_) return;
  (can_go_on ? given_up_ : ended_beyond_).insert(number);
  while (!given_up_.empty() && *given_up_.begin() + kResumeWindow < next_number_) {
    ended_beyond_.insert(given_up_.extract(given_up_.begin()));
  }
  if (next_number_ > inherited_through_ + kResumeWindow) let_go_of_inherited(inherited_through_);
  acknowledge_ended();
}

void SessionState::acknowledge_ended() {
  while (!ended_beyond_.empty() && *ended_beyond_.begin() <= acknowledged_through_ + 1) {
    acknowledged_through_ = std::max(acknowledged_through_, *ended_beyond_.begin());
    ended_beyond_.erase(ended_beyond_.begin());
  }
}

void SessionState::acknowledge_through(std::uint64_t number) {
  Lock lock(mutex_);
  let_go_of_inherited(number);
  acknowledge_ended();
}

// Earlier holders may have left out numbers, and what the server does not know has no end here. So all go together, up
// to the first one that is in flight again.
void SessionState::let_go_of_inherited(std::uint64_t through) {
  through = std::min(through, inherited_through_);
  if (!pending_.empty()) through = std::min(through, pending_.begin()->first - 1);
  if (!calls_.empty()) through = std::min(through, *calls_.begin() - 1);
  if (!ending_.empty()) through = std::min(through, *ending_.begin() - 1);
  if (through <= acknowledged_through_) return;
  acknowledged_through_ = through;
  given_up_.erase(given_up_.begin(), given_up_.upper_bound(through));
}

std::uint32_t SessionState::attempts(std::uint64_t number) const {
  Lock lock(mutex_);
  const auto found = pending_.find(number);
  return found != pending_.end() ? found->second->attempts : attempts_before(number);
}

std::uint32_t SessionState::attempts_before(std::uint64_t number) const {
  const Attempts& kept = attempts_[number % kAttemptsKept];
  return kept.number == number ? kept.count : 0;
}

void SessionState::schedule_renewal(std::uint64_t delay_us) {
  const auto delay = std::chrono::microseconds(std::max<std::uint64_t>(delay_us, 100'000));
  connection_->timers().at(Clock::now() + delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->renew_lease();
  });
}

void SessionState::renew_lease() {
  Lock lock(mutex_);
  if (closing_ || ended_) return;
  renewal_ = std::make_unique<Renewal>();
  renewal_->request.set_session(id_);
  renewal_->request.set_holder(holder_);
  connection_->prepare(Clock::now() + std::chrono::microseconds(std::max<std::uint64_t>(lease_us_ / 3, 1'000'000)),
                       &renewal_->context);
  link_.stub->async()->KeepSessionAlive(&renewal_->context, &renewal_->request, &renewal_->response,
                                        [this](const grpc::Status& status) { on_lease_renewed(status); });
}

void SessionState::on_lease_renewed(const grpc::Status& status) {
  Lock lock(mutex_);
  const Error error = to_error(status, renewal_->context, where());
  renewal_.reset();  // it holds the channel, which must not be destroyed on this thread (session_stream.hpp)
  changed_.notify_all();
  if (closing_) return;
  if (error.code == ErrorCode::failed_precondition) return set_ended(error);
  // Trying again soon does not help against a login that does not count any more.
  const bool soon = error && error.code != ErrorCode::unauthenticated && error.code != ErrorCode::permission_denied;
  schedule_renewal(soon ? std::min<std::uint64_t>(lease_us_ / 10, 1'000'000) : lease_us_ / 3);
}

void SessionState::close() {
  Lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
  std::vector<RequestPointer> open;
  for (const auto& entry : pending_) open.push_back(entry.second);
  end_all(open, make_error(ErrorCode::cancelled, "the session was closed before the answer came"), &lock);
  if (stream_ != nullptr) stream_->cancel();
  if (renewal_) renewal_->context.TryCancel();
  changed_.wait(lock, [&] { return stream_ == nullptr && !renewal_ && listeners_running_ == 0; });
}

}  // namespace kilokv::client
