// The way in. A request is admitted in these steps; each may refuse it:
//   1. Guards that were uploaded for it come before its own.
//   2. What its transactions may cost is estimated.
//   3. In a session: the session decides whether it runs, joins the same request in flight, or is answered from what is
//      stored. A retry after a crash runs only what has no result yet.
//   4. Queue, log and parking lot are charged for it.
// Then the admission queue owns it, and the executor is told.
//
// Invariants: a request that is refused leaves its upload as it was, and its sink hears of it once. Nothing is admitted
// once CoreContext::draining is set.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class Admission {
 public:
  explicit Admission(CoreContext* core) : core_(core) {}

  // As Database::submit.
  void submit(std::unique_ptr<Request> request);
  // As Database::upload.
  Result<std::uint64_t> upload(const ReadSetChunk& chunk);

 private:
  std::shared_ptr<AdmittedRequest> admit(std::unique_ptr<Request> content, Status* status);
  Status complete_with_upload(AdmittedRequest* request);
  Status begin_in_session(AdmittedRequest* request);
  Status charge(AdmittedRequest* request);
  void give_back_upload(AdmittedRequest* request);
  void recycle(std::unique_ptr<Request> content);

  CoreContext* const core_;
};

}  // namespace kilokv::server
