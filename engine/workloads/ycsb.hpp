// ycsb-a: workload A of YCSB (Cooper et al., 2010) as transactions of `operations` operations, each a read or, with
// `update_share`, a blind update of a whole byte value. Keys user............ of 16 bytes.
// Invariant: the keys are the initial ones, and each value has payload_bytes bytes and begins with its key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

struct YcsbOptions {
  std::uint32_t payload_bytes = 100;
  std::uint32_t operations = 1;  // of each transaction
  double update_share = 0.5;
};

class YcsbA {
 public:
  static constexpr std::string_view kPrefix = "user";

  YcsbA(std::uint64_t keys, const DistributionOptions& distribution, const YcsbOptions& options, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      sink->begin(0, 0);
      for (std::uint32_t j = 0; j < options_.operations; ++j) {
        const KeyName name(kPrefix, keys_.draw(&random_));
        const std::uint32_t key = sink->key(name.view());
        if (random_.chance(options_.update_share)) {
          fill(name, random_.next());
          sink->op(OpKind::put, key, Operand::bytes, sink->value(payload_));
        } else {
          sink->op(OpKind::get, key, Operand::integer, 0);
        }
      }
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  // The key, then `salt` in eight bytes, then a constant filling, cut to payload_bytes.
  void fill(const KeyName& key, std::uint64_t salt) {
    const std::size_t head = std::min(payload_.size(), KeyName::kBytes);
    std::memcpy(payload_.data(), key.view().data(), head);
    std::memcpy(payload_.data() + head, &salt, std::min(payload_.size() - head, sizeof salt));
  }

  std::uint64_t count_;
  YcsbOptions options_;
  KeyDistribution keys_;
  Random random_;
  std::string payload_;
};

}  // namespace kilokv::engine
