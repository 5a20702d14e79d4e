// The stored results of sessions (server/core/sessions/stored_results.cpp). A slice that can be parsed shows the same
// results after it is encoded and parsed again.
#include "server/core/sessions/stored_results.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/core/sessions/recorded_results.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  using namespace kilokv::server;
  const Result<StoredSlice> slice = StoredSlice::parse(std::string(fuzz::text_of(data, size)));
  if (!slice.ok()) return 0;
  LineVisitor first, second;
  slice->visit(&first);
  KILOKV_CHECK(first.lines.size() == slice->size());
  std::uint64_t read_bytes = UINT64_MAX;
  std::string encoded;
  encode_results(*slice, UINT64_MAX, &read_bytes, &encoded);
  const Result<StoredSlice> again = StoredSlice::parse(encoded);
  KILOKV_CHECK(again.ok());
  again->visit(&second);
  KILOKV_CHECK(first.lines == second.lines);
  return 0;
}
