#include "server/core/pipeline/admission.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/access/access_check.hpp"
#include "server/core/digest.hpp"
#include "server/core/pipeline/read_only.hpp"
#include "server/core/sessions/attached_sinks.hpp"
#include "server/core/sessions/stored_results.hpp"

namespace kilokv::server {
namespace {

// A request that waits may have so much more memory than its content takes.
constexpr std::uint64_t kSpareTimes = 4, kSpareBytes = 4096;

}  // namespace

// The request has the memory of an earlier one. If that was much longer, a copy of the content takes its place: what
// waits in the queue counts with all its memory, and a short request must not count as a long one.
void Admission::give_back_spare_memory(AdmittedRequest* request) {
  Request& content = *request->content;
  const std::uint64_t most = kSpareTimes * content.transactions.memory_bytes() + kSpareBytes;
  if (capacity_bytes(content) <= most) return;
  auto small = std::make_unique<Request>();
  small->transactions.append(content.transactions, 0, content.transactions.size());
  small->parts_of_batch.assign(content.parts_of_batch.begin(), content.parts_of_batch.end());
  small->identity = content.identity;
  small->uploaded_keys = content.uploaded_keys;
  small->sink = content.sink;
  small->client = content.client;
  small->login = content.login;
  recycle(std::exchange(request->content, std::move(small)));
}

void Admission::recycle(std::unique_ptr<Request> content) {
  content->clear();
  core_->requests.give(std::move(content));
}

// The rights are those of the newest table. The batcher checks again if the table has changed when the request's turn
// comes.
Status Admission::find_rights(AdmittedRequest* request) {
  request->login = request->content->login;
  if (request->login == nullptr) return {};
  request->access_version = request->queue_access_version = core_->access.version();
  Result<std::shared_ptr<const Rights>> rights =
      rights_at(*core_->access.latest(), *request->login, core_->time_of_day());
  if (rights.ok()) request->rights = std::move(*rights);
  return rights.status();
}

Status Admission::check_access(const AdmittedRequest& request) {
  if (request.login == nullptr) return {};
  return check_rights(request.content->transactions, 0, request.transactions, *request.rights, request.login->user,
                      [](std::uint32_t t) { return t; });
}

// The rights are checked again before results of an earlier sending are shown, because a revoke may have been answered
// since check_access(). Guards that were uploaded are not in the request any more, so what the results show of them is
// checked.
Status Admission::may_show(AdmittedRequest* request, bool upload_gone, std::span<const StoredBytes> stored) {
  Status status;
  if (request->access_version != core_->access.version()) {
    status = find_rights(request);
    if (status.ok()) status = check_access(*request);
  }
  for (std::size_t i = 0; upload_gone && status.ok() && i < stored.size(); ++i) {
    const Result<StoredSlice> slice = StoredSlice::parse(stored[i]);
    KILOKV_CHECK(slice.ok());
    status = check_shown(*slice, *request->rights, request->login->user);
  }
  return status;
}

// Puts the uploaded guards before the transaction's own. If an earlier send of the same request took the upload, there
// are none to put. That send had the same rights, so they are enough for these guards.
Status Admission::complete_with_upload(AdmittedRequest* request) {
  Request& content = *request->content;
  if (content.uploaded_keys == 0) return {};
  request->uploaded = {content.uploaded_keys, digest_of(content.transactions), request->rights};
  Result<std::shared_ptr<Upload>> upload =
      core_->sessions.take_upload({*request->identity.session, request->identity.holder}, request->identity.number,
                                  request->client.get(), request->uploaded, &content.transactions);
  if (!upload.ok()) return upload.status();
  request->upload = std::move(*upload);
  request->own_batch = content.transactions.guard_kind.size() > core_->options.guards_max;
  return {};
}

void Admission::give_back_upload(AdmittedRequest* request) {
  if (request->upload == nullptr) return;
  core_->sessions.put_back({*request->identity.session, request->identity.holder}, request->identity.number,
                           std::move(request->upload), &request->content->transactions);
}

// Returns null with a status that is not ok if the request is refused. Returns null with ok if the session answered it,
// or joined it to the one in flight.
std::shared_ptr<AdmittedRequest> Admission::admit(std::unique_ptr<Request> content, Status* status) {
  auto request = std::make_shared<AdmittedRequest>();
  request->identity = content->identity;
  request->transactions = static_cast<std::uint32_t>(content->transactions.size());
  request->admitted_us = core_->environment.clock->monotonic_us();
  request->client = content->client != nullptr ? content->client : core_->no_client;
  request->trace = content->trace;
  request->content = std::move(content);
  *status = find_rights(request.get());
  // In a session, only a stored result is shown.
  if (status->ok() && core_->options.read_only && !request->identity.session) {
    *status = check_reads_only(request->content->transactions);
  }
  if (status->ok()) *status = complete_with_upload(request.get());
  if (status->ok()) *status = check_access(*request);
  if (!status->ok()) {
    give_back_upload(request.get());
    recycle(std::move(request->content));
    return nullptr;
  }
  core_->queue.estimate(request.get());
  if (request->identity.session) {
    *status = begin_in_session(request.get());
    if (request->unanswered == 0) return nullptr;
  } else {
    request->sink = request->content->sink;
    request->to_run = request->unanswered = request->transactions;
  }
  return request;
}

// The room that the results of a request get in their session. Guard values and reads get at most a quarter of the
// session's room; LogStage drops those that find none. Otherwise one large value in the database would make requests
// with many reads impossible for everybody, because each read may be of this value.
std::uint64_t Admission::stored_bytes_max(const AdmittedRequest& request) const {
  const std::uint64_t fixed = request.transactions * kStoredTransactionBytes;
  const std::uint64_t room = std::min(core_->options.session_bytes_max, core_->options.session_bytes_total_max);
  return kRequestBytes + kSinksBytes + fixed + std::min(request.cost.stored_bytes - fixed, room / 4);
}

// Leaves `unanswered` at 0 if nothing is to run. The status then says why: not ok if the request was refused; ok if it
// was answered from the session, or joined to the one in flight.
Status Admission::begin_in_session(AdmittedRequest* request) {
  Request& content = *request->content;
  const bool upload_gone = request->uploaded.keys > 0 && request->upload == nullptr;
  if (!upload_gone) request->identity.digest = digest_of(content.transactions);
  RequestHeader header{request->identity, request->transactions, content.sink,   stored_bytes_max(*request),
                       request->uploaded, upload_gone,           request->client};
  header.read_only = core_->options.read_only;
  if (request->login != nullptr) {
    header.may_show = [this, request, upload_gone](std::span<const StoredBytes> stored) {
      return may_show(request, upload_gone, stored);
    };
  }
  SessionAdmission admission = core_->sessions.begin(header, request->admitted_us);
  if (admission.kind != SessionAdmission::Kind::run) {
    if (admission.kind == SessionAdmission::Kind::refused) give_back_upload(request);
    recycle(std::move(request->content));
    return admission.status;
  }
  std::uint64_t fixed_bytes = kSinksBytes + (admission.all_remaining ? kRequestBytes : 0);
  if (!admission.all_remaining) {
    content.transactions.keep(admission.remaining);  // the others have results already
    request->indices = std::move(admission.remaining);
    core_->queue.estimate(request);
  }
  request->to_run = request->unanswered = static_cast<std::uint32_t>(content.transactions.size());
  fixed_bytes += request->to_run * kStoredTransactionBytes;
  request->stored_read_bytes = admission.reserved_bytes - std::min(admission.reserved_bytes, fixed_bytes);
  return {};
}

// Charges the request. If that is refused, also ends the request.
Status Admission::charge(AdmittedRequest* request) {
  Status status = core_->queue.charge(request);
  if (status.ok()) return status;
  status = status.as_not_run();
  core_->counters.refused.fetch_add(1, std::memory_order_relaxed);
  give_back_upload(request);  // first, because a client that hears of the refusal may send again at once
  if (request->identity.session) {
    core_->sessions.abandon(*request->identity.session, request->identity.number, status);
  } else {
    request->sink->fail(status);
  }
  recycle(std::move(request->content));
  return status;
}

SubmittedRequest Admission::submit(std::unique_ptr<Request> content) {
  const std::shared_ptr<ResponseSink> sink = content->sink;
  Status status = core_->draining.load(std::memory_order_acquire) ? draining() : Status();
  std::shared_ptr<AdmittedRequest> request;
  if (status.ok()) request = admit(std::move(content), &status);
  if (request == nullptr) {
    if (!status.ok()) {
      core_->counters.refused.fetch_add(1, std::memory_order_relaxed);
      sink->fail(status.as_not_run());
    }
    return {};
  }
  give_back_spare_memory(request.get());
  if (!charge(request.get()).ok()) return {};
  request->upload.reset();
  if (core_->tells_requests()) core_->events.request_admitted(CoreContext::report_of(*request, 0));
  // In a session, a client that goes away can come back for its answer.
  SubmittedRequest submitted = request->identity.session ? nullptr : request;
  core_->queue.push(std::move(request));
  core_->executor_worker->notify();
  return submitted;
}

Result<std::uint64_t> Admission::upload(const ReadSetChunk& chunk) {
  if (core_->draining.load(std::memory_order_acquire)) return draining().as_not_run();
  Result<std::uint64_t> keys = core_->sessions.upload(chunk, core_->secret, core_->environment.clock->monotonic_us());
  if (keys.ok()) return keys;
  core_->counters.refused.fetch_add(1, std::memory_order_relaxed);
  return keys.status().as_not_run();
}

}  // namespace kilokv::server
