// The workloads, by name: one library for the engine bench, the load tester, the tests and the simulator.
//
//   bank          two distinct accounts, FAIL guard source >= amount, two ADDs; conserves the total      (bank.hpp)
//   bank-semantic withdrawals with a WAIT guard before the deposits that cover them; conserves the total
//   (bank_semantic.hpp) hot           bank in which every transfer touches one account (bank.hpp) hot-deposits  the
//   same without guards, always towards that account                                   (bank.hpp) ycsb-a        half
//   reads, half updates of byte values                                                (ycsb.hpp) mixed everything at
//   random over few keys, for differential tests                             (mixed.hpp)
//
// A generator knows nothing of results: the same options give the same transactions. Its key space and its invariant do
// not depend on seed and stream, so that many generators can load one database.
// Thread safety: one thread an object; make one per thread, with its own `stream`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/workloads/bank.hpp"
#include "engine/workloads/bank_semantic.hpp"
#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/mixed.hpp"
#include "engine/workloads/sink.hpp"
#include "engine/workloads/ycsb.hpp"

namespace kilokv::engine {

struct WorkloadOptions {
  std::string name = "bank";  // one of Workload::names()
  std::uint64_t keys = 100'000;
  DistributionOptions distribution = {};
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  // which of several generators with this seed
  BankSemanticOptions semantic = {};
  YcsbOptions ycsb = {};
  MixedOptions mixed = {};
};

class Workload {
 public:
  static std::vector<std::string> names();
  // INVALID_ARGUMENT names what is out of range: an unknown name, keys outside of 2 to 2^32, a share outside of 0 to 1.
  static Result<Workload> create(const WorkloadOptions& options);

  // Appends the next `transactions` transactions to the sink. No allocation of its own in the steady state.
  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    std::visit([&](auto& generator) { generator.generate(sink, transactions); }, generator_);
  }

  // Appends what the transactions so far wait for and generate() would have brought later.
  template <TransactionSink Sink>
  void close(Sink* sink) {
    if (auto* pairs = std::get_if<BankSemantic>(&generator_)) pairs->close(sink);
  }

  // Visits the records to load before the first transaction, in key order within each kind of key.
  void for_each_initial(const InitialVisitor& visit) const;

  // The check of the state after any number of batches: feed it every live record, then ask violation().
  InvariantCheck invariant() const;

  const WorkloadOptions& options() const { return options_; }

 private:
  using Generator = std::variant<Bank, BankSemantic, YcsbA, Mixed>;
  Workload(WorkloadOptions options, Generator generator)
      : options_(std::move(options)), generator_(std::move(generator)) {}

  WorkloadOptions options_;
  Generator generator_;
};

}  // namespace kilokv::engine
