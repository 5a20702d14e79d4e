// The fake database (fake_database.hpp).
#include "tests/unit/client/fake_database.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>
#include <utility>

#include "client/lib/src/error.hpp"
#include "client/lib/src/result_columns.hpp"

namespace kilokv::client {
namespace {

Error refusal() { return make_error(ErrorCode::unimplemented, "the fake database has no such call"); }

Results results_of(const std::vector<Outcome>& outcomes) {
  auto message = std::make_unique<v1::ResultColumns>();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    message->mutable_outcome()->push_back(static_cast<char>(outcomes[i]));
    message->add_rank(static_cast<std::uint32_t>(i));
  }
  Results results;
  results.columns().reset(outcomes.size());
  std::vector<std::uint32_t> fresh;
  const Error error = results.columns().add(std::move(message), &fresh);
  if (error) throw std::logic_error(error.message);
  return results;
}

}  // namespace

class FakeSession final : public Session {
 public:
  explicit FakeSession(FakeDatabase* database) : database_(database), id_(database->open()) {}
  ~FakeSession() override { database_->close(id_); }

  std::string id() const override { return std::to_string(id_); }
  Expected<RequestResult> execute(const Batch& batch, const CallOptions&) override {
    std::promise<Expected<RequestResult>> promise;
    database_->submit(id_, batch, [&promise](const Progress& progress) {
      if (progress.error) return promise.set_value(progress.error);
      RequestResult result;
      std::vector<Outcome> outcomes;
      for (std::size_t i = 0; i < progress.results.size(); ++i) outcomes.push_back(progress.results.outcome(i));
      result.results = results_of(outcomes);
      promise.set_value(std::move(result));
    });
    return promise.get_future().get();
  }
  std::uint64_t execute_async(const Batch& batch, ProgressCallback callback, const CallOptions&) override {
    return database_->submit(id_, batch, std::move(callback));
  }
  Expected<RequestResult> resume(std::uint64_t, const Batch&, const CallOptions&) override { return refusal(); }
  std::uint64_t holder() const override { return 0; }
  Expected<std::vector<KnownRequest>> known_requests(const CallOptions&) override { return refusal(); }
  void acknowledge_through(std::uint64_t) override {}
  void keep_open() override {}
  std::uint32_t attempts(std::uint64_t) const override { return 1; }
  Expected<std::uint64_t> cancel(std::uint64_t, std::optional<std::uint32_t>) override { return refusal(); }

 private:
  FakeDatabase* const database_;
  const std::uint64_t id_;
};

class FakeClient final : public Client {
 public:
  explicit FakeClient(FakeDatabase* database) : database_(database) {}

  Expected<std::unique_ptr<Session>> open_session(const SessionOptions&) override {
    return std::unique_ptr<Session>(std::make_unique<FakeSession>(database_));
  }
  Expected<Results> get(const std::vector<std::string>& keys, const CallOptions&) override {
    auto rows = std::make_unique<v1::ResultRows>();
    v1::TransactionResult* row = rows->add_results();
    row->set_outcome(v1::OUTCOME_COMMITTED);
    const std::lock_guard lock(database_->mutex_);
    for (const std::string& key : keys) {
      v1::Read* read = row->add_reads();
      read->set_key(key);
      const auto found = database_->state_.find(key);
      if (found == database_->state_.end()) continue;
      if (const auto* integer = std::get_if<std::int64_t>(&found->second.value)) {
        read->mutable_value()->set_integer(*integer);
      } else {
        read->mutable_value()->set_bytes(std::get<std::string>(found->second.value));
      }
    }
    if (database_->random_() % 2 == 0) {  // what an earlier session has sent may run right after this read
      for (const auto& open : database_->requests_) open->waits = false;
      database_->changed_.notify_all();
    }
    Results results;
    results.columns().reset(1);
    std::vector<std::uint32_t> fresh;
    if (Error error = results.columns().add(std::move(rows), &fresh)) return error;
    return results;
  }

  Expected<Results> execute(const Batch&, const CallOptions&) override { return refusal(); }
  Expected<ScanPosition> scan(std::string_view, std::string_view, const std::function<bool(const Pair&)>&,
                              const ScanOptions&) override {
    return refusal();
  }
  Expected<std::vector<ParkedTransaction>> list_parked(const CallOptions&) override { return refusal(); }
  Expected<std::uint64_t> cancel_parked(std::uint64_t, const CallOptions&) override { return refusal(); }
  Expected<std::uint64_t> cancel_parked(const ParkedFilter&, const CallOptions&) override { return refusal(); }
  Expected<std::uint64_t> cancel(std::string_view, std::uint64_t, std::optional<std::uint32_t>, const CallOptions&,
                                 std::uint64_t) override {
    return refusal();
  }
  Expected<AttachedSession> attach_session(std::string_view, const AttachOptions&) override { return refusal(); }
  Expected<ServerStatus> status(const CallOptions&) override { return refusal(); }
  Expected<std::string> log_level(const CallOptions&) override { return refusal(); }
  Expected<std::string> set_log_level(const std::string&, const CallOptions&) override { return refusal(); }
  const ClientOptions& options() const override { return options_; }

 private:
  FakeDatabase* const database_;
  const ClientOptions options_;
};

FakeDatabase::FakeDatabase(std::uint64_t seed) : random_(seed), worker_([this] { run(); }) {}

FakeDatabase::~FakeDatabase() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_all();
  }
  worker_.join();
}

std::unique_ptr<Client> FakeDatabase::client() { return std::make_unique<FakeClient>(this); }

void FakeDatabase::break_off_after(std::uint32_t requests) {
  const std::lock_guard lock(mutex_);
  sends_left_ = requests;
}

void FakeDatabase::set_bytes_max(std::size_t key_bytes, std::size_t value_bytes) {
  const std::lock_guard lock(mutex_);
  key_bytes_max_ = key_bytes;
  value_bytes_max_ = value_bytes;
}

void FakeDatabase::forbid_waiting() {
  const std::lock_guard lock(mutex_);
  may_wait_ = false;
}

void FakeDatabase::put(const std::string& key, std::variant<std::int64_t, std::string> value) {
  const std::lock_guard lock(mutex_);
  state_[key].value = std::move(value);
}

void FakeDatabase::erase(const std::string& key) {
  const std::lock_guard lock(mutex_);
  state_.erase(key);
}

FakeDatabase::State FakeDatabase::state() {
  std::unique_lock lock(mutex_);
  is_settling_ = true;
  for (const auto& open : requests_) open->waits = false;
  changed_.notify_all();
  changed_.wait(lock, [this] { return requests_.empty(); });
  is_settling_ = false;
  return state_;
}

std::uint64_t FakeDatabase::expired() {
  const std::lock_guard lock(mutex_);
  return expired_;
}

std::uint64_t FakeDatabase::in_flight_max() {
  const std::lock_guard lock(mutex_);
  return in_flight_max_;
}

std::uint64_t FakeDatabase::open() {
  const std::lock_guard lock(mutex_);
  return ++sessions_;
}

std::uint64_t FakeDatabase::submit(std::uint64_t session, const Batch& batch, ProgressCallback callback) {
  auto request = std::make_unique<Request>();
  request->session = session;
  request->columns = batch.columns();
  request->callback = std::move(callback);
  const std::lock_guard lock(mutex_);
  request->number = ++numbers_;
  if (broken_.contains(session)) {
    answer(*request, {}, make_error(ErrorCode::unavailable, "the session is broken off"));
  } else if (const auto problem = problem_of(request->columns)) {
    answer(*request, {}, *problem);
  } else {
    requests_.push_back(std::move(request));
    in_flight_max_ = std::max<std::uint64_t>(in_flight_max_, requests_.size());
  }
  if (sends_left_ != ~0u && --sends_left_ == 0) {
    sends_left_ = ~0u;
    broken_.insert(session);
    for (const auto& open : requests_) {
      if (open->session != session) continue;
      answer(*open, {}, make_error(ErrorCode::unavailable, "the session is broken off"));
      open->callback = nullptr;
      open->waits = random_() % 2 == 0;  // until the next session does something
    }
  }
  changed_.notify_all();
  return numbers_;
}

void FakeDatabase::close(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  for (const auto& open : requests_) {
    if (open->session != session) continue;
    answer(*open, {}, make_error(ErrorCode::cancelled, "the session is closed"));
    open->callback = nullptr;
  }
}

std::optional<Error> FakeDatabase::problem_of(const Batch::Columns& columns) const {
  for (int t = 0; t < columns.size() && !may_wait_; ++t) {
    if (columns.transaction_wait_timeout_us(t) == 0) continue;
    Error error = make_error(ErrorCode::invalid_argument, "too long a wait");
    error.setting = "--wait-timeout-max";
    return error;
  }
  for (int o = 0; o < columns.message.operation_key_size(); ++o) {
    const bool is_bytes = !columns.message.operation_operand().empty() &&
                          columns.message.operation_operand()[static_cast<std::size_t>(o)] == v1::OPERAND_KIND_BYTES;
    const std::size_t key = columns.key(columns.message.operation_key(o)).size();
    const std::size_t value = is_bytes ? columns.value(columns.message.operation_value(o)).size() : 0;
    if (key <= key_bytes_max_ && value <= value_bytes_max_) continue;
    const bool is_key = key > key_bytes_max_;
    Error error = make_error(ErrorCode::invalid_argument, "too long");
    error.field = "transactions[0].then[" + std::to_string(o) + (is_key ? "].key" : "].operand");
    error.limit = std::to_string(is_key ? key_bytes_max_ : value_bytes_max_) + " bytes";
    error.actual = std::to_string(is_key ? key : value) + " bytes";
    error.setting = is_key ? "--key-bytes-max" : "--value-bytes-max";
    return error;
  }
  return std::nullopt;
}

void FakeDatabase::run() {
  constexpr auto kQuiet = std::chrono::milliseconds(2);  // after which one that waits expires
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (run_one()) {
      changed_.notify_all();
      lock.unlock();  // so that others can send before the next one runs
      std::this_thread::yield();
      lock.lock();
      continue;
    }
    if (is_settling_) {
      for (const auto& open : requests_) answer(*open, {Outcome::wait_expired}, {});
      requests_.clear();
      changed_.notify_all();
    }
    const auto has_work = [&] { return is_stopping_ || (is_settling_ && !requests_.empty()) || has_able(); };
    if (!changed_.wait_for(lock, kQuiet, has_work)) expire_one();
  }
}

bool FakeDatabase::has_able() const {
  return std::any_of(requests_.begin(), requests_.end(), [](const auto& open) { return !open->waits; });
}

// Ends the wait of one request that somebody listens to.
void FakeDatabase::expire_one() {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i]->callback) waiting.push_back(i);
  }
  if (waiting.empty()) return;
  const std::size_t victim = waiting[random_() % waiting.size()];
  ++expired_;
  answer(*requests_[victim], {Outcome::wait_expired}, {});
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(victim));
}

// Runs one of the requests that can run. Returns false if there is none.
bool FakeDatabase::run_one() {
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (!requests_[i]->waits) able.push_back(i);
  }
  if (able.empty()) return false;
  const std::size_t chosen = able[random_() % able.size()];
  Request& request = *requests_[chosen];
  std::vector<Outcome> outcomes;
  for (int t = 0; t < request.columns.size(); ++t) {
    auto outcome = outcome_of(request.columns, t);
    if (!outcome && request.columns.transaction_wait_timeout_us(t) == 0) outcome = Outcome::wait_expired;
    if (!outcome) {
      request.waits = true;
      return true;
    }
    outcomes.push_back(*outcome);
  }
  answer(request, outcomes, {});
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(chosen));
  for (const auto& other : requests_) other->waits = false;
  return true;
}

std::optional<Outcome> FakeDatabase::outcome_of(const Batch::Columns& columns, int transaction) {
  for (auto g = static_cast<int>(columns.guard_begin(transaction));
       g < static_cast<int>(columns.message.guard_ends(transaction)); ++g) {
    if (holds(columns, g)) continue;
    const std::string& on_false = columns.message.guard_on_false();
    const bool waits = !on_false.empty() && on_false[static_cast<std::size_t>(g)] == v1::ON_FALSE_WAIT;
    return waits ? std::nullopt : std::optional(Outcome::guard_failed);
  }
  for (auto o = static_cast<int>(columns.then_begin(transaction));
       o < static_cast<int>(columns.message.then_ends(transaction)); ++o) {
    write(columns, o);
  }
  return Outcome::committed;
}

bool FakeDatabase::holds(const Batch::Columns& columns, int guard) const {
  const auto found = state_.find(std::string(columns.key(columns.message.guard_key(guard))));
  switch (columns.message.guard_kind()[static_cast<std::size_t>(guard)]) {
    case v1::GUARD_KIND_EXISTS: return found != state_.end();
    case v1::GUARD_KIND_ABSENT: return found == state_.end();
    case v1::GUARD_KIND_BYTES_EQUAL: {
      if (found == state_.end()) return false;
      const auto* bytes = std::get_if<std::string>(&found->second.value);
      return bytes != nullptr && *bytes == columns.value(columns.message.guard_operand(guard));
    }
    default: throw std::logic_error("the fake database does not know this guard");
  }
}

void FakeDatabase::write(const Batch::Columns& columns, int operation) {
  const v1::TransactionColumns& message = columns.message;
  Stored& stored = state_[std::string(columns.key(message.operation_key(operation)))];
  const bool is_bytes = !message.operation_operand().empty() &&
                        message.operation_operand()[static_cast<std::size_t>(operation)] == v1::OPERAND_KIND_BYTES;
  if (is_bytes) {
    stored.value = std::string(columns.value(message.operation_value(operation)));
  } else {
    stored.value = message.operation_value(operation);
  }
  ++stored.writes;
}

void FakeDatabase::answer(const Request& request, const std::vector<Outcome>& outcomes, const Error& error) {
  if (!request.callback) return;
  const Results results = results_of(error ? std::vector<Outcome>() : outcomes);
  const std::vector<std::uint32_t> indices;
  request.callback(Progress{results, indices, true, error, request.number});
}

}  // namespace kilokv::client
