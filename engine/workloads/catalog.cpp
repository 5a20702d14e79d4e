#include "engine/workloads/catalog.hpp"

namespace kilokv::engine {

namespace {

using Generator = Workload::Generator;

template <BankKind kKind>
Generator make_bank(const WorkloadOptions& o, std::uint64_t seed) {
  return Bank(o.keys, o.distribution, kKind, seed);
}
template <class Paired>
Generator make_paired(const WorkloadOptions& o, std::uint64_t seed) {
  return Paired(o.keys, o.distribution, o.semantic, seed);
}
template <YcsbLetter kLetter>
Generator make_ycsb(const WorkloadOptions& o, std::uint64_t seed) {
  return Ycsb(kLetter, o.keys, o.distribution, o.ycsb, seed);
}
template <class Plain>
Generator make_plain(const WorkloadOptions& o, std::uint64_t seed) {
  return Plain(o.keys, seed);
}
template <class Drawn>
Generator make_drawn(const WorkloadOptions& o, std::uint64_t seed) {
  return Drawn(o.keys, o.distribution, seed);
}
template <char kLetter>
Generator make_hash_table(const WorkloadOptions& o, std::uint64_t seed) {
  return HashTable(kLetter, o.keys, HashTable::kElements, seed);
}
template <KMeansShape (*kShape)(std::uint64_t)>
Generator make_kmeans(const WorkloadOptions& o, std::uint64_t seed) {
  return KMeans(kShape(o.keys), seed);
}
Generator make_skiplist(const WorkloadOptions& o, std::uint64_t seed) {
  return Skiplist(o.keys, o.distribution, o.semantic.read_only_share, seed);
}
Generator make_array_walk(const WorkloadOptions& o, std::uint64_t seed) {
  return ArrayWalk(o.keys, o.distribution, o.ycsb.operations, o.semantic.read_only_share, seed);
}
Generator make_stm_bench7(const WorkloadOptions& o, std::uint64_t seed) {
  return StmBench7(o.keys, o.ycsb.update_share, seed);
}
Generator make_tpcc(const WorkloadOptions& o, std::uint64_t seed) { return Tpcc(o.keys, o.distribution, o.tpcc, seed); }
Generator make_mixed(const WorkloadOptions& o, std::uint64_t seed) { return Mixed(o.keys, o.mixed, seed); }

}  // namespace

const std::vector<CatalogEntry>& catalog() {
  static const std::vector<CatalogEntry> all = {
      {{.name = "bank", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000}, make_bank<kTransfers>},
      {{.name = "bank-semantic",
        .keys_are = "customers, with two accounts each",
        .keys_small = 100'000,
        .keys_paper = 1'250'000,
        .has_pairs = true},
       make_paired<BankSemantic>},
      {{.name = "deposits", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000},
       make_bank<kDeposits>},
      {{.name = "hot", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000},
       make_bank<kHotTransfers>},
      {{.name = "hot-deposits", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000},
       make_bank<kHotDeposits>},
      {{.name = "atm", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 1'000'000}, make_drawn<Atm>},
      {{.name = "vacation",
        .keys_are = "customers, and rooms, 150 per type",
        .keys_small = 15'000,
        .keys_paper = 150'000,
        .has_pairs = true,
        .is_shared = false},
       make_paired<Vacation>},
      {{.name = "skiplist",
        .keys_are = "entries at the start",
        .keys_small = 5'000,
        .keys_paper = 5'000,
        .keys_max = Skiplist::kKeysMax,
        .is_shared = false},
       make_skiplist},
      {{.name = "kmeans", .keys_are = "points, in 16 clusters", .keys_small = 100'000, .keys_paper = 1'000'000},
       make_kmeans<KMeans::stamp>},
      {{.name = "graph",
        .keys_are = "vertices, with 10 edges each",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .is_shared = false},
       make_plain<Graph>},
      {{.name = "ht-h",
        .keys_are = "entries of a table, high contention",
        .keys_small = 8'000,
        .keys_paper = 8'000,
        .keys_max = HashTable::kKeysMax,
        .is_shared = false},
       make_hash_table<'h'>},
      {{.name = "ht-l",
        .keys_are = "entries of a table, low contention",
        .keys_small = 80'000,
        .keys_paper = 80'000,
        .keys_max = HashTable::kKeysMax,
        .is_shared = false},
       make_hash_table<'l'>},
      {{.name = "cloth", .keys_are = "points, 2,048 in each T-shirt", .keys_small = 2'048, .keys_paper = 30'720},
       make_plain<Cloth>},
      {{.name = "barnes-hut",
        .keys_are = "bodies",
        .keys_small = 3'000,
        .keys_paper = 30'000,
        .keys_max = BarnesHut::kKeysMax,
        .is_shared = false},
       make_plain<BarnesHut>},
      {{.name = "cuda-cuts", .keys_are = "pixels, in rows of 200", .keys_small = 3'000, .keys_paper = 30'000},
       make_plain<CudaCuts>},
      {{.name = "apriori",
        .keys_are = "items",
        .keys_small = 100,
        .keys_paper = 1'000,
        .keys_max = Apriori::kKeysMax,
        .is_shared = false},
       make_drawn<Apriori>},
      {{.name = "local-ht",
        .keys_are = "buckets, for 256 items",
        .keys_small = 32,
        .keys_paper = 256,
        .keys_max = LocalHashTable::kKeysMax,
        .is_shared = false},
       make_plain<LocalHashTable>},
      {{.name = "local-km",
        .keys_are = "centers, for 256 points",
        .keys_small = 32,
        .keys_paper = 256,
        .keys_max = KMeans::kWorkGroup},
       make_kmeans<KMeans::local>},
      {{.name = "local-ga",
        .keys_are = "solutions",
        .keys_small = 32,
        .keys_paper = 256,
        .keys_max = Genetic::kKeysMax},
       make_plain<Genetic>},
      {{.name = "array-walk",
        .keys_are = "elements",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .operations_max = ArrayWalk::kOperationsMax},
       make_array_walk},
      {{.name = "stmbench7",
        .keys_are = "atomic parts, 200 in each composite",
        .keys_small = 10'000,
        .keys_paper = 100'000},
       make_stm_bench7},
      {{.name = "tpcc",
        .keys_are = "customers, 30,000 per warehouse",
        .keys_small = 30'000,
        .keys_paper = 300'000,
        .keys_max = TpccScale::kCustomersMax,
        .is_shared = false},
       make_tpcc},
      {{.name = "ycsb-a", .keys_are = "rows", .keys_small = 100'000, .keys_paper = 1'000'000},
       make_ycsb<YcsbLetter::a>},
      {{.name = "ycsb-b", .keys_are = "rows", .keys_small = 100'000, .keys_paper = 1'000'000},
       make_ycsb<YcsbLetter::b>},
      {{.name = "ycsb-c", .keys_are = "rows", .keys_small = 100'000, .keys_paper = 1'000'000},
       make_ycsb<YcsbLetter::c>},
      {{.name = "ycsb-d",
        .keys_are = "rows at the start",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .growing = "usrd"},
       make_ycsb<YcsbLetter::d>},
      {{.name = "ycsb-e",
        .keys_are = "rows at the start",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .operations_max = 1000,
        .has_ranges = true,
        .growing = "usre"},
       make_ycsb<YcsbLetter::e>},
      {{.name = "ycsb-f",
        .keys_are = "rows, with two fields each",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .operations_max = 256},
       make_ycsb<YcsbLetter::f>},
      {{.name = "mixed",
        .keys_are = "keys; at most 64 of them are used",
        .keys_small = 64,
        .keys_paper = 64,
        .is_shared = false},
       make_mixed},
  };
  return all;
}

}  // namespace kilokv::engine
