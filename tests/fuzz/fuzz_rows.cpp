// Transactions as rows (server/service/decode_rows.cpp).
#include "server/service/decode.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  v1::TransactionRows rows;
  if (!rows.ParseFromArray(data, static_cast<int>(size))) return 0;
  engine::TransactionColumns columns;
  if (server::decode(rows, {fuzz::kSecret, fuzz::limits()}, &columns).ok()) fuzz::check_accepted(columns);
  return 0;
}
