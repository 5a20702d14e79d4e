// Commits with large read sets (read_set.hpp).
#include "client/lib/src/read_set.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "client/lib/src/batch_columns.hpp"
#include "client/lib/src/encode.hpp"
#include "client/lib/src/result_columns.hpp"
#include "client/lib/src/trace.hpp"

namespace kilokv::client {
namespace {

constexpr int kGuardsMax = 1024;                              // default of the server's --guards-max
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;     // about the bytes of one message
constexpr std::size_t kChunkBytesMin = std::size_t{1} << 12;  // smallest chunk, for a server with a lower limit
constexpr std::size_t kKeyBytes = 16;                         // most bytes of a key in a message, its own not counted

class Commit {
 public:
  // `earlier_attempts`: how often this number was sent before. If `resumed`, one of them may have run.
  Commit(SessionState* session, const Batch& batch, std::uint64_t number, std::uint32_t earlier_attempts, bool resumed,
         TimePoint deadline, const CallOptions& options)
      : session_(*session),
        connection_(session->connection()),
        batch_(batch),
        number_(number),
        deadline_(deadline),
        options_(options),
        may_have_run_(resumed) {
    keys_ = uploadable_guards(batch);
    result_.request = number;
    result_.attempts = earlier_attempts;
    result_.invoke_us = monotonic_us();
  }

  Error run() {
    Error error = run_until_end();
    if (!error) return error;
    if (may_have_run_) {
      error = of_many_sendings(std::move(error));
    } else if (result_.attempts == 0) {
      error.not_run = true;
    }
    error.request = result_.request;
    error.attempts = result_.attempts;
    return error;
  }

  bool session_gone() const { return session_gone_; }
  RequestResult take_result() { return std::move(result_); }
  std::uint32_t attempts() const { return result_.attempts; }

 private:
  Error run_until_end() {
    Backoff backoff(connection_.options());
    for (;;) {
      Error error = upload();
      error.may_have_run = false;  // only a lost upload, which runs nothing
      if (!error) {
        error = execute();
        if (error && !never_ran(error)) may_have_run_ = true;
      }
      // The server does not have the keys, so they are uploaded again. If the session is gone, the first chunk fails.
      if (error.code != ErrorCode::failed_precondition || session_gone_) return error;
      const TimePoint again = Clock::now() + backoff.next(error.retry_after_us);
      if (again >= deadline_) return error;
      std::this_thread::sleep_until(again);
    }
  }

  Error upload() {
    for (std::uint32_t begin = 0; begin < keys_;) {
      v1::UploadReadSetRequest chunk;
      fill_id(chunk.mutable_id());
      const std::uint32_t end = fill_chunk(begin, &chunk);
      v1::UploadReadSetResponse response;
      Error error = call("UploadReadSet",
                         [&](auto* stub, auto* context) { return stub->UploadReadSet(context, chunk, &response); });
      if (is_too_large_to_send(error) && chunk_bytes_ > kChunkBytesMin) {
        chunk_bytes_ /= 2;
        continue;
      }
      session_gone_ = error.code == ErrorCode::failed_precondition && begin == 0;
      if (error) return error;
      begin = end;
    }
    return {};
  }

  // Fills the chunk with keys from `begin` on. Returns the end of the keys that fit.
  std::uint32_t fill_chunk(std::uint32_t begin, v1::UploadReadSetRequest* chunk) const {
    const Batch::Columns& c = batch_.columns();
    chunk->set_offset(begin);
    std::uint32_t end = begin;
    for (std::size_t bytes = 0; end < keys_ && bytes < chunk_bytes_; ++end) {
      const std::string_view key = c.key(c.message.guard_key(static_cast<int>(end)));
      chunk->add_keys(key.data(), key.size());
      chunk->add_versions(static_cast<std::uint64_t>(c.message.guard_operand(static_cast<int>(end))));
      bytes += key.size() + kKeyBytes;
    }
    return end;
  }

  Error execute() {
    v1::ExecuteRequest request;
    fill_id(request.mutable_id());
    fill_transaction(batch_, 0, request.mutable_transaction(), keys_);
    request.set_uploaded_keys(keys_);
    v1::ExecuteResponse response;
    Error error = call("Execute", [&](auto* stub, auto* context) {
      ++result_.attempts;
      add_trace(options_, context);
      return stub->Execute(context, request, &response);
    });
    if (error) return error;
    auto rows = std::make_unique<v1::ResultRows>();
    rows->add_results()->Swap(response.mutable_result());
    std::vector<std::uint32_t> fresh;
    result_.results.columns().reset(1);
    error = result_.results.columns().add(std::move(rows), &fresh);
    result_.return_us = monotonic_us();
    return error;
  }

  // Retries every call, because in a session everything may be sent again.
  template <class Attempt>
  Error call(const char* name, const Attempt& attempt) {
    if (session_.closed()) return make_error(ErrorCode::cancelled, "the session was closed before the answer came");
    return connection_.call(name, deadline_, Retry::always, attempt);
  }

  void fill_id(v1::RequestId* id) const {
    id->set_session(session_.id());
    id->set_holder(session_.holder());
    id->set_number(number_);
    id->set_acknowledged_through(session_.acknowledged_through());
  }

  SessionState& session_;
  Connection& connection_;
  const Batch& batch_;
  const std::uint64_t number_;
  const TimePoint deadline_;
  const CallOptions& options_;
  std::uint32_t keys_ = 0;
  std::size_t chunk_bytes_ = kChunkBytes;
  bool session_gone_ = false;
  bool may_have_run_;  // a sending of the commit, now or before, ended without a clear refusal
  RequestResult result_;
};

}  // namespace

std::uint32_t uploadable_guards(const Batch& batch) {
  const Batch::Columns& c = batch.columns();
  if (c.size() != 1 || c.transaction_wait_timeout_us(0) != 0) return 0;
  const std::string& on_false = c.message.guard_on_false();
  if (on_false.find(static_cast<char>(v1::ON_FALSE_WAIT)) != std::string::npos) return 0;
  const std::string& kinds = c.message.guard_kind();
  const std::size_t end = kinds.find_first_not_of(static_cast<char>(v1::GUARD_KIND_VERSION_EQUAL));
  return static_cast<std::uint32_t>(std::min(end, kinds.size()));
}

bool needs_upload(const Batch& batch) {
  const Batch::Columns& c = batch.columns();
  const std::uint32_t guards = uploadable_guards(batch);
  if (guards == 0) return false;
  return c.message.guard_key_size() > kGuardsMax || c.message.key_bytes().size() + guards * kKeyBytes > kChunkBytes;
}

bool is_too_large_to_send(const Error& error) {
  return error.code == ErrorCode::invalid_argument &&
         (error.setting == "--guards-max" || error.setting == "--message-bytes-max");
}

Expected<RequestResult> commit_with_upload(SessionState* session, std::uint64_t number, const Batch& batch,
                                           const CallOptions& options) {
  if (Error error = check_trace(options)) return error;
  const TimePoint deadline = session->connection().deadline(options);
  const Expected<std::uint64_t> begun = session->begin_call(number);
  if (!begun) return begun.error();
  Commit commit(session, batch, *begun, session->attempts(*begun), number != 0, deadline, options);
  const Error error = commit.run();
  session->end_call(*begun, commit.attempts(), error, commit.session_gone());
  if (error) return error;
  return commit.take_result();
}

}  // namespace kilokv::client
