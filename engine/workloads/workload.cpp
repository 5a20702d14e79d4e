#include "engine/workloads/workload.hpp"

#include <cstdio>

#include "engine/base/check.hpp"
#include "engine/workloads/catalog.hpp"

namespace kilokv::engine {

namespace {

const CatalogEntry* find_entry(const std::string& name) {
  for (const CatalogEntry& entry : catalog()) {
    if (entry.kind.name == name) return &entry;
  }
  return nullptr;
}

std::string joined_names() {
  std::string all;
  for (const CatalogEntry& entry : catalog()) all += (all.empty() ? "" : ", ") + std::string(entry.kind.name);
  return all;
}

Status check_options(const WorkloadOptions& options) {
  const CatalogEntry* const entry = find_entry(options.name);
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
  for (const CatalogEntry& entry : catalog()) all.emplace_back(entry.kind.name);
  return all;
}

std::vector<WorkloadKind> Workload::kinds() {
  std::vector<WorkloadKind> all;
  for (const CatalogEntry& entry : catalog()) all.push_back(entry.kind);
  return all;
}

WorkloadKind Workload::kind(const std::string& name) {
  const CatalogEntry* const entry = find_entry(name);
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
