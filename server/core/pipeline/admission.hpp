// Admission: the entry of the core. A request is admitted in these steps. Each step may refuse it:
//   1. Its login must count.
//   2. Guards that were uploaded for it are put before its own.
//   3. The rights of its user must be enough for all that it says.
//   4. The highest cost of its transactions is estimated.
//   5. In a session: the session decides what happens. The request runs, or joins the same request in flight, or is
//      answered from stored results. A retry after a crash runs only the transactions that have no result yet.
//   6. Queue, log and parking lot are charged for it.
// Then the admission queue owns it, and the executor is notified.
//
// Invariants: a refused request leaves its upload as it was, and its sink gets exactly one fail(). Nothing is admitted
// once CoreContext::draining is set.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class Admission {
 public:
  explicit Admission(CoreContext* core) : core_(core) {}

  // As Database::submit.
  SubmittedRequest submit(std::unique_ptr<Request> request);
  // As Database::upload.
  Result<std::uint64_t> upload(const ReadSetChunk& chunk);

 private:
  std::shared_ptr<AdmittedRequest> admit(std::unique_ptr<Request> content, Status* status);
  Status find_rights(AdmittedRequest* request);
  static Status check_access(const AdmittedRequest& request);
  Status may_show(AdmittedRequest* request, bool upload_gone, std::span<const StoredBytes> stored);
  Status complete_with_upload(AdmittedRequest* request);
  std::uint64_t stored_bytes_max(const AdmittedRequest& request) const;
  Status begin_in_session(AdmittedRequest* request);
  void give_back_spare_memory(AdmittedRequest* request);
  Status charge(AdmittedRequest* request);
  void give_back_upload(AdmittedRequest* request);
  void recycle(std::unique_ptr<Request> content);

  CoreContext* const core_;
};

}  // namespace kilokv::server
