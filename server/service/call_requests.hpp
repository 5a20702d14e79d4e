// The requests that a call has submitted outside a session, so that they can end with their call.
// Thread safety: all members.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "server/core/database.hpp"

namespace kilokv::server {

class CallRequests {
 public:
  // Remembers a request that was submitted. If the call has ended already, the request ends now.
  void add(Database* database, SubmittedRequest request) {
    if (request.expired()) return;  // refused, answered, or in a session
    const std::lock_guard lock(mutex_);
    if (over_) return database->abandon(request);
    std::erase_if(requests_, [](const SubmittedRequest& old) { return old.expired(); });
    database_ = database;
    requests_.push_back(std::move(request));
  }
  // The call has ended without the answers of its requests.
  void abandon() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    for (const SubmittedRequest& request : std::exchange(requests_, {})) database_->abandon(request);
  }

 private:
  std::mutex mutex_;
  bool over_ = false;
  Database* database_ = nullptr;
  std::vector<SubmittedRequest> requests_;
};

}  // namespace kilokv::server
