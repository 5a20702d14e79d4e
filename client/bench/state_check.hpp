// Does the database hold what the workload's invariant allows? One scan at one batch boundary, so that it can run
// beside any load. Thread safety: the functions may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/workloads/workload.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

// The keys of a workload: for each prefix of its key names, from its first key to its last, or, where rows are
// inserted, to the last that could be.
class KeySpace {
 public:
  explicit KeySpace(const engine::Workload& workload);
  bool contains(std::string_view key) const;
  std::string from() const;  // bounds of a scan that visits all of them: [from, to)
  std::string to() const;

 private:
  struct Range {
    std::string first, last;
  };
  std::map<std::string, Range, std::less<>> ranges_;  // by prefix
};

struct StateReport {
  std::string statement;  // the invariant
  std::string violation;  // empty: it holds
  std::uint64_t records = 0;
  std::int64_t total = 0;  // of all integers
  std::uint64_t boundary = 0;
};

client::Expected<StateReport> check_state(client::Client* client, const engine::Workload& workload,
                                          std::int64_t give_up_after_us);

}  // namespace kilokv::bench
