// The comparisons of the referee. They compare one transaction's reported results, and the batch's writes, with the
// model's run. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/referee/model.hpp"
#include "engine/referee/referee.hpp"

namespace kilokv::engine {

// An INTERNAL status that names the batch, such as "transaction 3 (rank 7): outcome: expected COMMITTED, got OVERFLOW".
Status mismatch(const Execution& execution, const std::string& where, const std::string& expected,
                const std::string& got);
std::string describe(const ModelValue& value);

// The results that one transaction must have, according to the model.
struct ExpectedTransaction {
  std::size_t t = 0;
  Outcome outcome = Outcome::undecided;  // the run's, or wait_expired
  std::uint32_t rank = 0;                // not compared for a postponed transaction
  const ModelRun& run;
};

// Checks that every result column has the length that its shape demands. The other comparisons then index freely.
Status compare_shapes(const Execution& execution);
Status compare_transaction(const Execution& execution, const ExpectedTransaction& expected);

// A write that the model made.
struct ExpectedWrite {
  std::uint32_t rank;
  std::string key;
  ModelValue value;
  TimeUs expires_us = 0;  // of the key after the write; 0: never
};
Status compare_writes(const Execution& execution, const std::vector<ExpectedWrite>& expected);

}  // namespace kilokv::engine
