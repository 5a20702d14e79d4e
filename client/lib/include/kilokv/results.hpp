// The results of transactions, as the server answered them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

namespace kilokv::client {

// The numbers are those of the protocol.
enum class Outcome : std::uint8_t {
  unknown = 0,  // no answer (yet)
  committed = 1,
  guard_failed = 2,  // the else-operations ran
  wait_expired = 3,
  overflow = 4,
  type_mismatch = 5,
  cancelled = 6,
};
// Returns COMMITTED, GUARD_FAILED, ...
const char* to_string(Outcome outcome);

enum class FailedIn : std::uint8_t { none, guards, then_operations, else_operations };

// An absent value, an integer, or bytes. Bytes point into the Results.
using ValueView = std::variant<std::monostate, std::int64_t, std::string_view>;

struct ReadView {
  std::uint32_t operation = 0;  // its index in the list that ran
  std::string_view key;
  ValueView value;
  std::optional<std::uint64_t> version;  // null: the transaction's own earlier write; 0: never written
};

struct ResultView {
  Outcome outcome = Outcome::unknown;
  FailedIn failed_in = FailedIn::none;
  std::uint32_t failed_index = 0;        // meaningful unless failed_in is none
  std::optional<ReadView> guard_value;   // for GUARD_FAILED and WAIT_EXPIRED, if the guard has a key
  std::optional<std::uint64_t> version;  // the commit version, if the transaction wrote
  std::uint64_t batch = 0, admitted_batch = 0;
  std::uint32_t rank = 0;
  std::int64_t batch_time_us = 0;
  bool reads_dropped = false;
};

// The results of a Batch, by the index of a transaction in it. They are stored in columns. Views are made on demand,
// and are valid as long as the Results.
class Results {
 public:
  Results();
  Results(Results&&) noexcept;
  Results& operator=(Results&&) noexcept;
  ~Results();

  std::size_t size() const;                  // number of transactions in the request
  Outcome outcome(std::size_t index) const;  // faster than at(index)
  ResultView at(std::size_t index) const;
  std::size_t read_count(std::size_t index) const;
  ReadView read(std::size_t index, std::size_t i) const;  // in the order in which they ran

  struct Columns;  // internal
  Columns& columns() { return *columns_; }
  const Columns& columns() const { return *columns_; }

 private:
  std::unique_ptr<Columns> columns_;
};

}  // namespace kilokv::client
