// Uploaded read sets as they come over the wire: chunks of keys, and the transaction that is committed beside them.
//
// Whatever the bytes, INVALID_ARGUMENT names the field, the limit, the actual value and the setting. Thread safety:
// pure functions.
#pragma once

#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/core/sessions/upload.hpp"
#include "server/service/decode.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

// The chunk looks into the message.
Result<ReadSetChunk> decode_chunk(const v1::UploadReadSetRequest& message, const ServiceOptions& options);

// Of a message with uploaded_keys: the transaction beside them. Requires: `columns` is empty.
Status decode_beside_uploaded(const v1::ExecuteRequest& message, const DecodeContext& context,
                              engine::TransactionColumns* columns);

}  // namespace kilokv::server
