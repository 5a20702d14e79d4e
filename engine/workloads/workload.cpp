#include "engine/workloads/workload.hpp"

#include <algorithm>
#include <limits>

namespace kilokv::engine {

namespace {

std::string joined_names() {
  std::string all;
  for (const std::string& name : Workload::names()) all += (all.empty() ? "" : ", ") + name;
  return all;
}

Status check_options(const WorkloadOptions& options) {
  const auto names = Workload::names();
  if (std::find(names.begin(), names.end(), options.name) == names.end()) {
    return Status::invalid({"workload", "one of " + joined_names(), options.name, "--workload"});
  }
  if (options.keys < 2 || options.keys > std::uint64_t{1} << 32) {
    return Status::invalid({"keys", "2 to 4294967296 keys", std::to_string(options.keys), "--keys"});
  }
  for (const double share : {options.semantic.wait_share, options.ycsb.update_share}) {
    if (!(share >= 0 && share <= 1)) {
      return Status::invalid({"share", "0 to 1", std::to_string(share), "--wait-share, --update-share"});
    }
  }
  if (options.semantic.wait_lag < 1) return Status::invalid({"wait_lag", "at least 1 transaction", "0", "--wait-lag"});
  if (options.ycsb.operations < 1 || options.ycsb.operations > 1024) {
    return Status::invalid(
        {"operations", "1 to 1024 operations", std::to_string(options.ycsb.operations), "--operations"});
  }
  return {};
}

}  // namespace

std::vector<std::string> Workload::names() {
  return {"bank", "bank-semantic", "hot", "hot-deposits", "ycsb-a", "mixed"};
}

Result<Workload> Workload::create(const WorkloadOptions& options) {
  if (Status status = check_options(options); !status.ok()) return status;
  std::uint64_t mixer = options.seed + options.stream * 0xD1B54A32D192ED03u;
  const std::uint64_t seed = splitmix64(&mixer);
  const auto bank = [&](HotAccount hot) {
    return Workload(options, Bank(options.keys, options.distribution, hot, seed));
  };
  if (options.name == "bank") return bank(HotAccount::none);
  if (options.name == "hot") return bank(HotAccount::transfers);
  if (options.name == "hot-deposits") return bank(HotAccount::deposits);
  if (options.name == "bank-semantic") {
    return Workload(options, BankSemantic(options.keys, options.distribution, options.semantic, seed));
  }
  if (options.name == "ycsb-a") return Workload(options, YcsbA(options.keys, options.distribution, options.ycsb, seed));
  return Workload(options, Mixed(options.keys, options.mixed, seed));
}

void Workload::for_each_initial(const InitialVisitor& visit) const {
  std::visit([&](const auto& generator) { generator.for_each_initial(visit); }, generator_);
}

InvariantCheck Workload::invariant() const {
  return InvariantCheck(std::visit([](const auto& generator) { return generator.invariant(); }, generator_));
}

}  // namespace kilokv::engine
