// The batches that the tests send. Thread safety: pure functions.
#pragma once

#include <string>

#include "kilokv/batch.hpp"

namespace kilokv::client {

inline Batch adds(int transactions) {
  Batch batch;
  for (int i = 0; i < transactions; ++i) {
    batch.begin();
    batch.add(batch.key("key" + std::to_string(i)), 1);
    batch.end();
  }
  return batch;
}

}  // namespace kilokv::client
