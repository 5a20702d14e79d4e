// The comparisons of the referee: one transaction's reported results, and the batch's writes, against the model's run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/referee/model.hpp"
#include "engine/referee/referee.hpp"

namespace kilokv::engine {

// "transaction 3 (rank 7): outcome: expected COMMITTED, got OVERFLOW", as an INTERNAL status that names the batch.
Status mismatch(const Execution& execution, const std::string& where, const std::string& expected,
                const std::string& got);
std::string describe(const ModelValue& value);

// What the model says that the results of one transaction must be.
struct ExpectedTransaction {
  std::size_t t = 0;
  Outcome outcome = Outcome::undecided;  // the run's, or wait_expired
  std::uint32_t rank = 0;                // not compared of a postponed one
  const ModelRun& run;
};

// Every result column has the length that its shape demands, so that the rest may index freely.
Status compare_shapes(const Execution& execution);
Status compare_transaction(const Execution& execution, const ExpectedTransaction& expected);

// A write that the model made.
struct ExpectedWrite {
  std::uint32_t rank;
  std::string key;
  ModelValue value;
};
Status compare_writes(const Execution& execution, const std::vector<ExpectedWrite>& expected);

}  // namespace kilokv::engine
