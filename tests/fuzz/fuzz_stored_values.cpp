// The values of the state, sessions and metadata families, and the keys of sessions (server/storage/stored_values.cpp).
// The first byte chooses the kind. Each value has one encoding, so what is decoded must encode to the same bytes.
#include "server/storage/stored_values.hpp"

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  using namespace kilokv::server;
  std::string_view bytes = fuzz::text_of(data, size);
  switch (fuzz::take_choice(&bytes) % 5) {
    case 0: {
      const Result<DatabaseIdentity> identity = storage::decode_identity(bytes);
      if (identity.ok()) KILOKV_CHECK(storage::encode_identity(*identity) == bytes);
      break;
    }
    case 1: {
      StoredRecord record;
      std::string again;
      if (!storage::decode_state(bytes, &record).ok()) break;
      storage::encode_state(record, &again);
      KILOKV_CHECK(again == bytes);
      break;
    }
    case 2: {  // both decoders get the bytes, because a key is too short to take inputs from the values
      StoredSession session;
      std::uint64_t generation = 0;
      if (storage::decode_session(bytes, &session).ok()) KILOKV_CHECK(storage::encode_session(session) == bytes);
      if (!storage::decode_session_key(bytes, &generation, &session).ok()) break;
      KILOKV_CHECK(storage::encode_session_key(generation, session) == bytes);
      break;
    }
    case 3: {
      const Result<storage::Checkpoint> checkpoint = storage::decode_checkpoint(bytes);
      if (checkpoint.ok()) KILOKV_CHECK(storage::encode_checkpoint(*checkpoint) == bytes);
      break;
    }
    default: {
      storage::LogSegment segment{.first_batch = 1};
      if (!storage::decode_segment(bytes, &segment).ok()) break;
      KILOKV_CHECK(segment.last_batch >= segment.first_batch);
      KILOKV_CHECK(storage::encode_segment(segment) == bytes);
    }
  }
  return 0;
}
