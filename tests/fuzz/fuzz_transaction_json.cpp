// Transactions as JSON (client/cli/json_stream.cpp, transaction_json.cpp). The server decides the same about a batch
// that the client accepts, whether it is sent as rows or as columns.
#include "client/cli/transaction_json.hpp"

#include <sstream>

#include "client/lib/src/batch_columns.hpp"
#include "client/lib/src/encode.hpp"
#include "server/service/decode.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

void check_batch(const client::Batch& batch) {
  if (client::check_batch(batch).code != client::ErrorCode{}) return;
  v1::ExecuteBatchRequest rows, columns;
  client::fill_transactions(batch, client::Encoding::rows, &rows);
  client::fill_transactions(batch, client::Encoding::columns, &columns);
  engine::TransactionColumns from_rows, from_columns;
  const Status row_status = server::decode_transactions(rows, {kSecret, limits()}, &from_rows);
  const Status column_status = server::decode_transactions(columns, {kSecret, limits()}, &from_columns);
  KILOKV_CHECK(row_status.ok() == column_status.ok());
  if (!row_status.ok()) return;
  check_accepted(from_rows);
  check_accepted(from_columns);
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  std::istringstream input{std::string(fuzz::text_of(data, size))};
  client::JsonStream stream(&input);
  client::Batch batch;
  while (const auto value = stream.next()) {
    const auto appended = client::append_transaction(value->text, &batch, value->begin);
    if (appended) continue;
    KILOKV_CHECK(!appended.error().message.empty());
    batch.clear();
  }
  if (!batch.empty()) fuzz::check_batch(batch);
  return 0;
}
