// Decoders: transactions as they came over the wire, rows or columns, into the one in-memory form, validated.
//
// Whatever the bytes, a decoder reads nothing out of bounds and either leaves columns that the engine may rely on or
// returns INVALID_ARGUMENT that names the field, the limit, the actual value and the setting; then the columns are to
// be thrown away. Columnar messages are copied column by column: the only work per element is the check of its value
// and the hash of a key. Thread safety: pure functions; any number of threads, each with its own columns.
#pragma once

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/validate.hpp"
#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/kilokv.pb.h"
#include "kilokv/v1/transaction.pb.h"

namespace kilokv::server {

// Whether the message has fields that this server does not know. A part of a transaction that has some is refused: to
// ignore a guard would run something else than was asked.
inline bool has_unknown_fields(const google::protobuf::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

struct DecodeContext {
  const engine::KeyHashSecret& secret;
  const engine::TransactionLimits& limits;
};

// Requires: `columns` is empty.
Status decode(const v1::Transaction& transaction, const DecodeContext& context, engine::TransactionColumns* columns);
Status decode(const v1::TransactionRows& rows, const DecodeContext& context, engine::TransactionColumns* columns);
Status decode(const v1::TransactionColumns& message, const DecodeContext& context, engine::TransactionColumns* columns);

// ExecuteBatchRequest and SessionRequest: whichever form the message holds.
template <class Message>
Status decode_transactions(const Message& message, const DecodeContext& context, engine::TransactionColumns* columns) {
  switch (message.transactions_case()) {
    case Message::kRows: return decode(message.rows(), context, columns);
    case Message::kColumns: return decode(message.columns(), context, columns);
    case Message::TRANSACTIONS_NOT_SET: break;
  }
  return Status::invalid({.field = "transactions", .limit = "rows or columns", .actual = "not set", .setting = ""})
      .because(ErrorReason::missing_field);
}

}  // namespace kilokv::server
