// Checks whether the database holds a state that the workload's invariant allows. It is one scan at one batch boundary,
// so it can run during any load. Thread safety: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workloads/workload.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

// The keys of a workload. For each prefix of its key names they are the range from its first key to its last one. If
// rows are inserted, the range ends with the last key that could be inserted.
class KeySpace {
 public:
  explicit KeySpace(const engine::Workload& workload);
  bool contains(std::string_view key) const;
  std::string from() const;  // bounds of a scan that visits all of them: [from, to)
  std::string to() const;
  std::vector<std::string> prefixes() const;  // of the names of its keys

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
