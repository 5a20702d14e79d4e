// Transactions as JSON, with the fields of a history line (docs/history.md): guards, then, else, precedence,
// wait_timeout_ms. A string is accepted for a byte value, too.
#pragma once

#include <string_view>

#include "client/cli/json_stream.hpp"
#include "kilokv/batch.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

// Appends the transaction that `text` is to the batch; false if it is a history's header. On an error (the message says
// what is wrong with which field, and where; the text begins at `begin`) the batch is left with an unfinished
// transaction: clear it.
Expected<bool> append_transaction(std::string_view text, Batch* batch, TextPosition begin = {});

}  // namespace kilokv::client
