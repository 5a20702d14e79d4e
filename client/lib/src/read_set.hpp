// Commits with large read sets. The `version ==` guards at the beginning of a transaction are uploaded in chunks. Then
// the rest of the transaction is executed together with them (UploadReadSet in kilokv.proto).
//
// The server forgets an upload when it restarts, or when no chunk comes for a minute (--upload-idle-max). Then the
// commit, or a chunk that is not the first, gets FAILED_PRECONDITION. The upload starts again under the same number, so
// the commit is still applied only once.
//
// Thread safety: functions without state. commit_with_upload() blocks.
#pragma once

#include <cstdint>
#include <memory>

#include "client/lib/src/session_state.hpp"

namespace kilokv::client {

// The number of guards that can be uploaded: the `version ==` guards at the beginning of a single transaction that has
// no WAIT guard.
std::uint32_t uploadable_guards(const Batch& batch);
// Whether they must be uploaded if the server has its default limits.
bool needs_upload(const Batch& batch);
// Whether a request was refused because it is too large without an upload.
bool is_too_large_to_send(const Error& error);

// Uploads and commits in the session, under `number` (0: the next number). If the session is closed meanwhile, this
// ends with `cancelled` after the current call. Requires: the caller keeps the session alive, check_batch() returned no
// error, and uploadable_guards() is not 0.
Expected<RequestResult> commit_with_upload(SessionState* session, std::uint64_t number, const Batch& batch,
                                           const CallOptions& options);

}  // namespace kilokv::client
