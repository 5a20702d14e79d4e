// Transactions as columns (server/service/decode_columns.cpp).
#include "server/service/decode.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  v1::TransactionColumns message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  engine::TransactionColumns columns;
  if (server::decode(message, {fuzz::kSecret, fuzz::limits()}, &columns).ok()) fuzz::check_accepted(columns);
  return 0;
}
