// Commits with large read sets: the `version ==` guards that a transaction begins with are uploaded in chunks, and the
// rest of it is executed beside them (UploadReadSet in kilokv.proto).
//
// The server forgets an upload when it restarts, or when nothing is added to it for a minute (--upload-idle-max). Then
// the commit, or a chunk behind the first, is FAILED_PRECONDITION, and the upload starts over, under the same number:
// the commit is applied once all the same.
//
// Thread safety: free functions; the call blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "client/lib/src/session_state.hpp"

namespace kilokv::client {

// How many of its guards can be uploaded: those of one transaction that does not wait, up to the first other guard.
std::uint32_t uploadable_guards(const Batch& batch);
// Whether they have to be, where the server has the limits that it has by default.
bool needs_upload(const Batch& batch);
// Whether a request was refused for what an upload can help.
bool is_too_large_to_send(const Error& error);

// Uploads and commits, in the session, under `number` (0: the next one). Requires: check_batch passed,
// uploadable_guards is not 0. A session that is closed meanwhile ends it as cancelled behind the call at hand.
Expected<RequestResult> commit_with_upload(std::shared_ptr<SessionState> session, std::uint64_t number,
                                           const Batch& batch, const CallOptions& options);

}  // namespace kilokv::client
