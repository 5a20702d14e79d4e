#include "engine/workloads/workload.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/base/check.hpp"

namespace kilokv::engine {

namespace {

using Generator = Workload::Generator;

struct Entry {
  WorkloadKind kind;
  Generator (*make)(const WorkloadOptions& options, std::uint64_t seed);
};

template <HotAccount kHot>
Generator make_bank(const WorkloadOptions& o, std::uint64_t seed) {
  return Bank(o.keys, o.distribution, kHot, seed);
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
Generator make_atm(const WorkloadOptions& o, std::uint64_t seed) { return Atm(o.keys, o.distribution, seed); }
Generator make_skiplist(const WorkloadOptions& o, std::uint64_t seed) {
  return Skiplist(o.keys, o.distribution, o.semantic.read_only_share, seed);
}
Generator make_tpcc(const WorkloadOptions& o, std::uint64_t seed) { return Tpcc(o.keys, o.distribution, o.tpcc, seed); }
Generator make_mixed(const WorkloadOptions& o, std::uint64_t seed) { return Mixed(o.keys, o.mixed, seed); }

// The paper's sizes: PR-STM (section 4) for bank to graph, KILO TM for atm; YCSB leaves its own open.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {{.name = "bank", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000},
       make_bank<HotAccount::none>},
      {{.name = "bank-semantic",
        .keys_are = "customers, of two accounts",
        .keys_small = 100'000,
        .keys_paper = 1'250'000,
        .has_pairs = true},
       make_paired<BankSemantic>},
      {{.name = "hot", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000},
       make_bank<HotAccount::transfers>},
      {{.name = "hot-deposits", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 2'500'000},
       make_bank<HotAccount::deposits>},
      {{.name = "atm", .keys_are = "accounts", .keys_small = 100'000, .keys_paper = 1'000'000}, make_atm},
      {{.name = "vacation",
        .keys_are = "customers, and rooms, 150 of a type",
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
       make_plain<KMeans>},
      {{.name = "graph",
        .keys_are = "vertices, of 10 edges",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .is_shared = false},
       make_plain<Graph>},
      {{.name = "tpcc",
        .keys_are = "customers, 30,000 of a warehouse",
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
        .keys_are = "rows, of two fields",
        .keys_small = 100'000,
        .keys_paper = 1'000'000,
        .operations_max = 256},
       make_ycsb<YcsbLetter::f>},
      {{.name = "mixed",
        .keys_are = "keys, at most 64 of which are used",
        .keys_small = 64,
        .keys_paper = 64,
        .is_shared = false},
       make_mixed},
  };
  return all;
}

const Entry* find_entry(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (entry.kind.name == name) return &entry;
  }
  return nullptr;
}

std::string joined_names() {
  std::string all;
  for (const Entry& entry : entries()) all += (all.empty() ? "" : ", ") + std::string(entry.kind.name);
  return all;
}

Status check_options(const WorkloadOptions& options) {
  const Entry* const entry = find_entry(options.name);
  if (entry == nullptr) return Status::invalid({"workload", "one of " + joined_names(), options.name, "--workload"});
  if (options.keys < 2 || options.keys > entry->kind.keys_max) {
    return Status::invalid({"keys", "2 to " + std::to_string(entry->kind.keys_max) + " keys with " + options.name,
                            std::to_string(options.keys), "--keys"});
  }
  for (const double share : {options.semantic.wait_share, options.semantic.read_only_share, options.ycsb.update_share,
                             options.tpcc.payment_share}) {
    if (!(share >= 0 && share <= 1)) {
      return Status::invalid({"share", "0 to 1", std::to_string(share),
                              "--wait-share, --read-only-share, --update-share, --payment-share"});
    }
  }
  if (options.semantic.wait_lag < 1) return Status::invalid({"wait_lag", "at least 1 transaction", "0", "--wait-lag"});
  if (options.ycsb.operations < 1 || options.ycsb.operations > entry->kind.operations_max) {
    return Status::invalid({"operations",
                            "1 to " + std::to_string(entry->kind.operations_max) + " operations with " + options.name,
                            std::to_string(options.ycsb.operations), "--operations"});
  }
  if (options.tpcc.warehouses > options.keys) {
    return Status::invalid({"warehouses",
                            "at most as many warehouses as customers (" + std::to_string(options.keys) + ")",
                            std::to_string(options.tpcc.warehouses), "--warehouses"});
  }
  return {};
}

}  // namespace

std::vector<std::string> Workload::names() {
  std::vector<std::string> all;
  for (const Entry& entry : entries()) all.emplace_back(entry.kind.name);
  return all;
}

std::vector<WorkloadKind> Workload::kinds() {
  std::vector<WorkloadKind> all;
  for (const Entry& entry : entries()) all.push_back(entry.kind);
  return all;
}

WorkloadKind Workload::kind(const std::string& name) {
  const Entry* const entry = find_entry(name);
  KILOKV_CHECK(entry != nullptr);
  return entry->kind;
}

std::string Workload::describe_sizes(bool shared_alone) {
  std::string text;
  for (const WorkloadKind& kind : kinds()) {
    if (shared_alone && !kind.is_shared) continue;
    char line[128];
    std::snprintf(line, sizeof line, "  %-14s %-36s %9llu %9llu\n", kind.name, kind.keys_are,
                  static_cast<unsigned long long>(kind.keys_small), static_cast<unsigned long long>(kind.keys_paper));
    text += line;
  }
  return text;
}

Result<Workload> Workload::create(const WorkloadOptions& options) {
  if (Status status = check_options(options); !status.ok()) return status;
  std::uint64_t mixer = options.seed + options.stream * 0xD1B54A32D192ED03u;
  return Workload(options, find_entry(options.name)->make(options, splitmix64(&mixer)));
}

void Workload::for_each_initial(const InitialVisitor& visit) const {
  std::visit([&](const auto& generator) { generator.for_each_initial(visit); }, generator_);
}

InvariantCheck Workload::invariant() const {
  return InvariantCheck(std::visit([](const auto& generator) { return generator.invariant(); }, generator_));
}

}  // namespace kilokv::engine
