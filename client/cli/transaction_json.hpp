// Transactions as JSON, with the fields of a history line (docs/history.md): guards, then, else, precedence,
// wait_timeout_ms. A byte value may also be a string.
#pragma once

#include <string_view>

#include "client/cli/json_stream.hpp"
#include "kilokv/batch.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

// Appends the transaction in `text` to the batch. Returns false if `text` is the header of a history. The message of an
// error names the field, what is wrong with it, and its place. `begin` is the place of the text in the input. After an
// error the batch has an unfinished transaction, so the caller must clear it.
Expected<bool> append_transaction(std::string_view text, Batch* batch, TextPosition begin = {});

}  // namespace kilokv::client
