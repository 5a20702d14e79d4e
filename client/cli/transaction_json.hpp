// Transactions as JSON, with the fields of a history line (docs/history.md): guards, then, else, precedence,
// wait_timeout_ms. A string is accepted for a byte value, too.
#pragma once

#include <string>
#include <string_view>

#include "kilokv/batch.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

// Appends the transaction of `line` to the batch; none if the line is a history's header. On an error (the text says
// what is wrong with which field) the batch is left with an unfinished transaction: clear it.
Expected<bool> append_transaction(std::string_view line, Batch* batch);

}  // namespace kilokv::client
