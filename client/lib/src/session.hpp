// The public part of a session: it turns calls into those of SessionState.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/lib/src/session_state.hpp"

namespace kilokv::client {

class SessionHandle final : public Session {
 public:
  explicit SessionHandle(std::shared_ptr<SessionState> state);
  ~SessionHandle() override;

  std::string id() const override;
  std::uint64_t holder() const override;
  Expected<RequestResult> execute(const Batch& batch, const CallOptions& options) override;
  std::uint64_t execute_async(const Batch& batch, ProgressCallback callback, const CallOptions& options) override;
  Expected<RequestResult> resume(std::uint64_t request, const Batch& batch, const CallOptions& options) override;
  std::uint32_t attempts(std::uint64_t request) const override;
  Expected<std::uint64_t> cancel(std::uint64_t request, std::optional<std::uint32_t> index) override;
  Expected<std::vector<KnownRequest>> known_requests(const CallOptions& options) override;
  void acknowledge_through(std::uint64_t request) override;
  void keep_open() override { stays_open_ = true; }

 private:
  Expected<RequestResult> send(std::uint64_t number, const Batch& batch, const CallOptions& options);
  Expected<RequestResult> submit_and_wait(std::uint64_t number, const Batch& batch, const CallOptions& options);

  std::shared_ptr<SessionState> state_;
  std::atomic<bool> stays_open_{false};
};

// Cancels a request of the session `id` (16 bytes).
Expected<std::uint64_t> cancel_request(Connection* connection, const std::string& id, std::uint64_t holder,
                                       std::uint64_t request, std::optional<std::uint32_t> index,
                                       const CallOptions& options);

}  // namespace kilokv::client
