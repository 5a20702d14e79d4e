// Makes the position key that of this run, and reads how far earlier runs have come. After that, nothing that an
// earlier run has sent can be applied any more: its transactions have guards for positions with its own run number, and
// those never come again.
//
// Thread safety: none.
#pragma once

#include <optional>
#include <string>

#include "client/cli/bulk/position.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

// The position of the earlier runs. Empty: there is none. Errors, here and below: failed_precondition if the key holds
// something else, or the position of an import with other options.
Expected<std::optional<Position>> read_position(Client* client, const std::string& key, const PositionOptions& options);

// `call`: of the transaction that makes the position this run's. Returns the position of the earlier runs, with this
// run's number. Empty: there was none, and the key now holds the start of the input.
Expected<std::optional<Position>> claim_position(Client* client, Session* session, const std::string& key,
                                                 const PositionOptions& options, const CallOptions& call);

}  // namespace kilokv::client
