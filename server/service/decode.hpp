// Decoders: they turn transactions from the wire, as rows or columns, into the one form in memory, and validate them.
//
// A decoder reads nothing out of bounds, whatever the bytes are. On success it leaves columns that the engine can rely
// on. Otherwise it returns INVALID_ARGUMENT with the field, the limit, the actual value and the setting, and the caller
// must throw the columns away. Columnar messages are copied column by column: the only work for each element is the
// check of its value, and the hash if it is a key. Thread safety: pure functions; each thread uses its own columns.
#pragma once

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/validate.hpp"
#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/kilokv.pb.h"
#include "kilokv/v1/transaction.pb.h"

namespace kilokv::server {

// Whether the message has fields that this server does not know. A part of a transaction with such a field is refused.
// If the server ignored an unknown kind of guard, for example, it would run another transaction than the client sent.
// The decoders call this for each guard, operation and operand. So the reflection of a type is looked up only once.
template <class Message>
bool has_unknown_fields(const Message& message) {
  static const google::protobuf::Reflection* const kReflection = Message::GetReflection();
  return !kReflection->GetUnknownFields(message).empty();
}

struct DecodeContext {
  const engine::KeyHashSecret& secret;
  const engine::TransactionLimits& limits;
};

// Checks what a transaction has beside its lists: there is no unknown field, and the precedence fits. `index`: its
// place in the request.
Status check_head(const v1::Transaction& transaction, int index);

// Adds one transaction. Does not validate. `index`: its place in the request.
Status add_row(const v1::Transaction& transaction, int index, engine::ColumnsBuilder* builder);

// Requires: `columns` is empty.
Status decode(const v1::Transaction& transaction, const DecodeContext& context, engine::TransactionColumns* columns);
Status decode(const v1::TransactionRows& rows, const DecodeContext& context, engine::TransactionColumns* columns);
Status decode(const v1::TransactionColumns& message, const DecodeContext& context, engine::TransactionColumns* columns);

// For ExecuteBatchRequest and SessionRequest: decodes the form that the message holds, rows or columns.
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
