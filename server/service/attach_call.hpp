// The messages of AttachSession: what a client asks, and what the server knows of the requests of a session.
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "engine/base/status.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/core/access/key_set.hpp"
#include "server/core/sessions/session_list.hpp"

namespace kilokv::server {

// INVALID_ARGUMENT names the field that is wrong. `message_bytes_max`: of the answer.
Result<AttachTarget> attach_target(const v1::AttachSessionRequest& request, std::uint64_t message_bytes_max);

// Fills the answer with the list, as far as one message holds it, and says where the next one goes on. `target`: what
// was asked. `readable`: the keys that the client may read; null: all. Results with other keys are shown without them.
// Cost: that of visiting all results of the list.
void fill_list(const SessionList& list, const AttachTarget& target, const KeySet* readable,
               v1::AttachSessionResponse* response);

}  // namespace kilokv::server
