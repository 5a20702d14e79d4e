// The public part of a session (session.hpp).
#include "client/lib/src/session.hpp"

#include <future>
#include <utility>

#include "client/lib/src/attach.hpp"
#include "client/lib/src/encode.hpp"
#include "client/lib/src/hex.hpp"
#include "client/lib/src/read_set.hpp"

namespace kilokv::client {

SessionHandle::SessionHandle(std::shared_ptr<SessionState> state) : state_(std::move(state)) { state_->start(); }

SessionHandle::~SessionHandle() {
  state_->close();
  if (stays_open_) return;
  // An error does not matter here: if the server does not get this call, the session ends with its lease.
  constexpr auto kCloseTimeout = std::chrono::seconds(1);
  const Error ignored = state_->connection().call("CloseSession", Clock::now() + kCloseTimeout,
                                                  Retry::where_someone_listens, [&](auto* stub, auto* context) {
                                                    v1::CloseSessionRequest request;
                                                    v1::CloseSessionResponse response;
                                                    request.set_session(state_->id());
                                                    request.set_holder(state_->holder());
                                                    return stub->CloseSession(context, request, &response);
                                                  });
  static_cast<void>(ignored);
}

std::string SessionHandle::id() const { return to_hex(state_->id()); }

std::uint64_t SessionHandle::holder() const { return state_->holder(); }

Expected<RequestResult> SessionHandle::execute(const Batch& batch, const CallOptions& options) {
  return send(0, batch, options);
}

Expected<RequestResult> SessionHandle::resume(std::uint64_t request, const Batch& batch, const CallOptions& options) {
  return send(request, batch, options);
}

// Sends with an upload if it is needed: because of the number of guards, or because the server refused the request.
Expected<RequestResult> SessionHandle::send(std::uint64_t number, const Batch& batch, const CallOptions& options) {
  const std::shared_ptr<SessionState> state = state_;  // another thread may destroy the session meanwhile
  const bool uploadable = !check_batch(batch) && !SessionState::in_listener() && uploadable_guards(batch) > 0;
  // How an earlier holder has sent a number is not known. It has decided as this client does.
  const bool decides = number == 0 || state->inherits(number);
  if (uploadable && (decides ? needs_upload(batch) : state->made_by_calls(number))) {
    return commit_with_upload(state.get(), number, batch, options);
  }
  auto answer = submit_and_wait(number, batch, options);
  if (number != 0 || !uploadable || !is_too_large_to_send(answer.error())) return answer;
  // The upload has another number. If an earlier sending ran, the transaction would be applied twice.
  if (!never_ran(answer.error())) return answer;
  return commit_with_upload(state.get(), 0, batch, options);
}

Expected<RequestResult> SessionHandle::submit_and_wait(std::uint64_t number, const Batch& batch,
                                                       const CallOptions& options) {
  if (SessionState::in_listener()) {
    return make_error(ErrorCode::failed_precondition, "a callback must not wait: use execute_async()");
  }
  std::promise<Expected<RequestResult>> promise;
  auto future = promise.get_future();
  const auto listener = [&promise](PendingRequest& request, const std::vector<std::uint32_t>&, bool done,
                                   const Error& error) {
    if (!done) return;
    if (error) {
      promise.set_value(error);
      return;
    }
    RequestResult result;
    result.results = std::move(request.results);
    result.request = request.number;
    result.attempts = request.attempts;
    result.invoke_us = request.invoke_us;
    result.return_us = request.return_us;
    result.refusals = request.refusals;
    promise.set_value(std::move(result));
  };
  state_->submit(number, batch, listener, options);
  return future.get();
}

std::uint64_t SessionHandle::execute_async(const Batch& batch, ProgressCallback callback, const CallOptions& options) {
  return state_->submit(
      0, batch,
      [callback = std::move(callback)](PendingRequest& request, const std::vector<std::uint32_t>& fresh, bool done,
                                       const Error& error) {
        callback(Progress{request.results, fresh, done, error, request.number, request.attempts, request.invoke_us,
                          request.return_us, request.refusals});
      },
      options);
}

std::uint32_t SessionHandle::attempts(std::uint64_t request) const { return state_->attempts(request); }

Expected<std::uint64_t> SessionHandle::cancel(std::uint64_t request, std::optional<std::uint32_t> index) {
  return cancel_request(&state_->connection(), state_->id(), state_->holder(), request, index, {});
}

Expected<std::vector<KnownRequest>> SessionHandle::known_requests(const CallOptions& options) {
  Connection* const connection = &state_->connection();
  return list_requests(connection, state_->id(), state_->holder(), connection->deadline(options));
}

void SessionHandle::acknowledge_through(std::uint64_t request) { state_->acknowledge_through(request); }

Expected<std::uint64_t> cancel_request(Connection* connection, const std::string& id, std::uint64_t holder,
                                       std::uint64_t request, std::optional<std::uint32_t> index,
                                       const CallOptions& options) {
  v1::CancelRequest message;
  v1::CancelTransactions* target = message.mutable_transactions();
  target->set_session(id);
  target->set_holder(holder);
  target->set_number(request);
  if (index) target->add_indices(*index);
  v1::CancelResponse response;
  const Error error =
      connection->call("Cancel", connection->deadline(options), Retry::always,
                       [&](auto* stub, auto* context) { return stub->Cancel(context, message, &response); });
  if (error) return error;
  return response.cancelled();
}

}  // namespace kilokv::client
