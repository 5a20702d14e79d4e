// The workloads, by name: one library for the engine bench, the load tester, the tests and the simulator.
//
//   bank            two distinct accounts, FAIL guard source >= amount, two ADDs; conserves the total    (bank.hpp)
//   bank-semantic   withdrawals with a WAIT guard before the deposits that cover them           (bank_semantic.hpp)
//   deposits        bank without guards, so that all conflicts are between ADDs                          (bank.hpp)
//   hot             bank in which every transfer touches one account                                     (bank.hpp)
//   hot-deposits    deposits, all to one account                                                         (bank.hpp)
//   atm             bank with a PIN that must be right                                                    (atm.hpp)
//   vacation        bookings that wait for cancellations                                             (vacation.hpp)
//   skiplist        inserts, deletes and searches of a list of 5 levels                              (skiplist.hpp)
//   kmeans          points added to the sums of 16 clusters                                            (kmeans.hpp)
//   graph           the minimum of the predecessors, edge by edge                                       (graph.hpp)
//   ht-h, ht-l      insertions into a chained hash table                                           (hash_table.hpp)
//   cloth           distance constraints between neighbouring points                                    (cloth.hpp)
//   barnes-hut      an octree that is built level by level                                         (barnes_hut.hpp)
//   cuda-cuts       excess flow pushed over the grid of an image                                    (cuda_cuts.hpp)
//   apriori         counts of the pairs of items in baskets                                           (apriori.hpp)
//   local-ht        insertions into a few buckets                                            (local_hash_table.hpp)
//   local-km        points added to the sums of a few centers                                          (kmeans.hpp)
//   local-ga        the worse one of two solutions becomes the better one                             (genetic.hpp)
//   array-walk      many loads, two stores                                                         (array_walk.hpp)
//   stmbench7       long traversals and short operations on a tree of assemblies                   (stm_bench7.hpp)
//   tpcc            NewOrder and Payment                                                                 (tpcc.hpp)
//   ycsb-a ... f    reads, updates, inserts, scans, read-modify-writes of rows                           (ycsb.hpp)
//   mixed           everything at random over few keys, for differential tests                          (mixed.hpp)
//
// A generator does not see results: the same options give the same transactions. Its key space and its invariant do not
// depend on seed and stream, so many generators can load one database. Generators of some workloads then disturb each
// other (WorkloadKind::is_shared). Some generators build on what they sent before (skiplist, vacation, ht-h): run all
// that they append, call by call.
//
// Thread safety: one thread for each object. Make one per thread, with its own `stream`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/workloads/apriori.hpp"
#include "engine/workloads/array_walk.hpp"
#include "engine/workloads/atm.hpp"
#include "engine/workloads/bank.hpp"
#include "engine/workloads/bank_semantic.hpp"
#include "engine/workloads/barnes_hut.hpp"
#include "engine/workloads/cloth.hpp"
#include "engine/workloads/cuda_cuts.hpp"
#include "engine/workloads/distribution.hpp"
#include "engine/workloads/genetic.hpp"
#include "engine/workloads/graph.hpp"
#include "engine/workloads/hash_table.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/kmeans.hpp"
#include "engine/workloads/local_hash_table.hpp"
#include "engine/workloads/mixed.hpp"
#include "engine/workloads/pairs.hpp"
#include "engine/workloads/sink.hpp"
#include "engine/workloads/skiplist.hpp"
#include "engine/workloads/stm_bench7.hpp"
#include "engine/workloads/tpcc.hpp"
#include "engine/workloads/vacation.hpp"
#include "engine/workloads/ycsb.hpp"

namespace kilokv::engine {

// The properties of a workload.
struct WorkloadKind {
  const char* name;
  const char* keys_are;      // the things that `keys` counts
  std::uint64_t keys_small;  // a small size for daily use
  std::uint64_t keys_paper;  // the size in the paper or benchmark that it comes from
  std::uint64_t keys_max = std::uint64_t{1} << 32;
  std::uint32_t operations_max = 1024;  // largest YcsbOptions::operations, so that a transaction keeps its limits
  bool has_pairs = false;               // SemanticOptions apply
  bool has_ranges = false;              // transactions have ranges
  bool is_shared = true;     // several generators can load one database, and later ones continue where others ended
  const char* growing = "";  // the prefix of keys that are inserted, beyond those of for_each_initial
};

struct WorkloadOptions {
  std::string name = "bank";  // one of Workload::names()
  std::uint64_t keys = 100'000;
  DistributionOptions distribution = {};
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  // which of several generators with this seed
  SemanticOptions semantic = {};
  YcsbOptions ycsb = {};
  TpccOptions tpcc = {};
  MixedOptions mixed = {};
};

class Workload {
 public:
  using Generator =
      std::variant<Bank, BankSemantic, Atm, Vacation, Skiplist, KMeans, Graph, HashTable, Cloth, BarnesHut, CudaCuts,
                   Apriori, LocalHashTable, Genetic, ArrayWalk, StmBench7, Tpcc, Ycsb, Mixed>;

  static std::vector<std::string> names();
  static std::vector<WorkloadKind> kinds();
  // Requires: one of names().
  static WorkloadKind kind(const std::string& name);
  // For --help: a line for each workload (or each shared one): what its keys are, and how many the presets have.
  static std::string describe_sizes(bool shared_alone);

  // Errors: INVALID_ARGUMENT, which names what is out of range: an unknown name, keys outside of 2 to the kind's limit,
  // a share outside of 0 to 1.
  static Result<Workload> create(const WorkloadOptions& options);

  // Appends the next `transactions` transactions to the sink. Allocates nothing itself in the steady state.
  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    std::visit([&](auto& generator) { generator.generate(sink, transactions); }, generator_);
  }

  // Appends the transactions that earlier ones wait for, and that generate() would have sent later.
  template <TransactionSink Sink>
  void close(Sink* sink) {
    const auto close_pairs = [&](auto& generator) {
      if constexpr (requires { generator.close(sink); }) generator.close(sink);
    };
    std::visit(close_pairs, generator_);
  }

  // Visits the records to load before the first transaction, in key order within each kind of key.
  void for_each_initial(const InitialVisitor& visit) const;

  // The check of the state after any number of batches. Give it every live record, then call violation().
  InvariantCheck invariant() const;

  const WorkloadOptions& options() const { return options_; }

 private:
  Workload(WorkloadOptions options, Generator generator)
      : options_(std::move(options)), generator_(std::move(generator)) {}

  WorkloadOptions options_;
  Generator generator_;
};

}  // namespace kilokv::engine
