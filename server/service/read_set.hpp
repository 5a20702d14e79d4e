// Decoders for uploaded read sets: chunks of keys, and the transaction that commits together with them.
//
// They accept any bytes. INVALID_ARGUMENT names the field, the limit, the actual value and the setting. Thread safety:
// pure functions.
#pragma once

#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/core/sessions/upload.hpp"
#include "server/service/decode.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

// The chunk refers to the bytes of the message, which must outlive it.
Result<ReadSetChunk> decode_chunk(const v1::UploadReadSetRequest& message, const ServiceOptions& options);

// For a message with uploaded_keys: decodes its transaction. Requires: `columns` is empty.
Status decode_beside_uploaded(const v1::ExecuteRequest& message, const DecodeContext& context,
                              engine::TransactionColumns* columns);

}  // namespace kilokv::server
