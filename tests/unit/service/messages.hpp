// Messages for the tests of decoders: valid random transactions, and columns as a client sends them. Thread safety:
// pure functions, but for the generator.
#pragma once

#include <random>
#include <string>

#include "engine/base/key_hash.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/validate.hpp"
#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/kilokv.pb.h"
#include "kilokv/v1/transaction.pb.h"
#include "server/service/decode.hpp"

namespace kilokv::server::test {

using Generator = std::mt19937_64;

inline constexpr engine::KeyHashSecret kSecret{.low = 7, .high = 9};
inline const engine::TransactionLimits kLimits;
inline const DecodeContext kContext{kSecret, kLimits};

// A transfer of `amount`: a FAIL guard on the source, two ADDs.
v1::Transaction transfer(const std::string& from, const std::string& to, std::int64_t amount);
v1::TransactionRows random_rows(Generator* generator, int transactions);

// The message with the content of `columns`. It has every column, even those that may be left out.
v1::TransactionColumns to_message(const engine::TransactionColumns& columns);
bool equal(const engine::TransactionColumns& a, const engine::TransactionColumns& b);

}  // namespace kilokv::server::test
