// The calls that are open, so that the server can end them before they end by themselves. A unary call is among them
// only if its client has shown a certificate: the others end when their requests do, or with their clients.
// Thread safety: all members.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/access/access_table.hpp"

namespace kilokv::server {

class ClientCertificate;

class OpenCall {
 public:
  virtual ~OpenCall() = default;
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

  // The server stops. A call that waits for further requests ends with `status`.
  virtual void end_when_stopping(const Status& /*status*/) {}
  // Users, roles or tokens have changed. A call that waits for further requests ends if its login does not count any
  // more. What others wait for is denied in core, if it has not run.
  virtual void end_without_login(const AccessTable& /*table*/) {}
  // The client's certificate is not accepted any more. Every call ends with `status`, and with it what it has sent
  // outside of a session.
  virtual void end_without_certificate(const Status& status) = 0;
  // Null: the server asks for none.
  virtual const std::shared_ptr<ClientCertificate>& certificate() const = 0;

 protected:
  OpenCall() = default;
};

class OpenCalls {
 public:
  // `life`: holds the call.
  void add(OpenCall* call, const std::shared_ptr<void>& life) {
    const std::lock_guard lock(mutex_);
    calls_.emplace(call, life);
  }
  void remove(OpenCall* call) {
    const std::lock_guard lock(mutex_);
    calls_.erase(call);
  }
  std::vector<std::shared_ptr<OpenCall>> all() const {
    std::vector<std::shared_ptr<OpenCall>> open;
    const std::lock_guard lock(mutex_);
    open.reserve(calls_.size());
    for (const auto& [call, life] : calls_) {
      if (std::shared_ptr<void> held = life.lock()) open.emplace_back(std::move(held), call);
    }
    return open;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<OpenCall*, std::weak_ptr<void>> calls_;
};

}  // namespace kilokv::server
