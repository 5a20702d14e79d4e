// Checks whether a state is one that a workload may leave: a conserved total, a property of every record, or a property
// of many records together. Any scan of all keys can feed it, the engine's or the network's. Thread safety: one thread
// for each object.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::engine {

// A property of many records together, such as that each room is free or used. It sees every live record whose value
// passed the rule that it belongs to.
class StateAudit {
 public:
  virtual ~StateAudit() = default;
  virtual void add(std::string_view key, std::int64_t integer, std::string_view bytes) = 0;
  virtual std::string violation() const = 0;  // after the last record; empty: it holds
};

// What is true at every batch boundary, whatever transactions committed.
struct InvariantRule {
  std::string statement = {};                      // for reports, such as "the balances sum to 100000000"
  std::optional<std::int64_t> total = {};          // of all integers
  std::optional<std::uint64_t> records = {};       // that are not deleted
  std::optional<std::uint64_t> records_max = {};   // the most that are not deleted
  bool integers = false;                           // every value is an integer
  bool never_negative = false;                     // no integer is below 0
  std::optional<std::uint64_t> marked_bytes = {};  // every value is bytes of this size and begins with its key
  std::unique_ptr<StateAudit> audit = {};
};

class InvariantCheck {
 public:
  explicit InvariantCheck(InvariantRule rule) : rule_(std::move(rule)) {}

  // Adds one live record of the scan. `integer` counts if type is integer, `bytes` if it is bytes.
  void add(std::string_view key, ValueType type, std::int64_t integer, std::string_view bytes);

  // Call it after the scan. Says what is violated, with expected and got. Empty: the invariant is true.
  std::string violation() const;
  const std::string& statement() const { return rule_.statement; }
  std::int64_t total() const { return total_; }
  std::uint64_t records() const { return records_; }

 private:
  std::string problem_of(std::string_view key, ValueType type, std::int64_t integer, std::string_view bytes) const;

  InvariantRule rule_;
  std::int64_t total_ = 0;
  std::uint64_t records_ = 0;
  std::string bad_record_;  // the first one
};

// A record that a workload starts from.
struct InitialRecord {
  std::string_view key = {};  // valid only during the call
  ValueType type = ValueType::integer;
  std::int64_t integer = 0;
  std::string_view bytes = {};  // of a value of type bytes; valid only during the call
};
using InitialVisitor = std::function<void(const InitialRecord&)>;

}  // namespace kilokv::engine
