#include "engine/workloads/ycsb.hpp"

namespace kilokv::engine {

YcsbA::YcsbA(std::uint64_t keys, const DistributionOptions& distribution, const YcsbOptions& options,
             std::uint64_t seed)
    : count_(keys), options_(options), keys_(keys, distribution), random_(seed), payload_(options.payload_bytes, '.') {}

void YcsbA::for_each_initial(const InitialVisitor& visit) const {
  YcsbA writer(*this);
  for (std::uint64_t i = 0; i < count_; ++i) {
    const KeyName name(kPrefix, i);
    writer.fill(name, 0);
    visit({.key = name.view(), .type = ValueType::bytes, .bytes = writer.payload_});
  }
}

InvariantRule YcsbA::invariant() const {
  return {.statement = std::to_string(count_) + " values of " + std::to_string(options_.payload_bytes) +
                       " bytes, each beginning with its key",
          .records = count_,
          .marked_bytes = options_.payload_bytes};
}

}  // namespace kilokv::engine
