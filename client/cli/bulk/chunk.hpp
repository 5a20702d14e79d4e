// A part of an import: consecutive lines, whose records are written by one transaction.
//
// The transaction of a chunk has, in this order:
//   - with a position key, a guard with WAIT: the position is what the transaction of the chunk before has written. So
//     chunks can be on their way together, and are applied in the order of the input, each once
//   - unless existing keys are overwritten, for each record a guard: its key is absent
//   - a PUT for each record
//   - with a position key, the PUT of the new position
// If a key exists, the guards fail and nothing is written. The sender then asks which keys exist, leaves those records
// out, and sends the rest as a new transaction. It has the same guard and the same new position, so that the chunks
// after it need no change.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/bulk/position.hpp"
#include "client/cli/bulk/record_parser.hpp"
#include "kilokv/batch.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

// What happens to a record whose key exists.
enum class Existing : std::uint8_t { overwrite, keep, refuse };
const char* to_string(Existing existing);

struct ChunkRules {
  Existing existing = Existing::overwrite;
  std::string position_key;            // empty: none
  PositionOptions position;            // with a position key
  std::uint64_t wait_us = 10'000'000;  // how long a transaction waits for the one before
};

class Chunk {
 public:
  // `use`: what is to become of the record.
  enum class Use : std::uint8_t {
    write,
    keep_existing,  // its key exists, and keeps its value
    leave_out,      // it was refused or set aside
  };
  struct Entry {
    std::uint64_t line = 0;
    std::size_t text_begin = 0, text_size = 0;  // in text_: the lines of the record
    std::size_t key_begin = 0, key_size = 0;    // in bytes_
    bool is_integer = false;
    std::int64_t integer = 0;
    std::int64_t expires_at_us = 0;               // 0: never
    std::size_t value_begin = 0, value_size = 0;  // in bytes_
    Use use = Use::write;
  };

  // The chunk begins at `begin`.
  explicit Chunk(const InputPlace& begin) : begin_(begin), next_line_(begin.line) {}

  // Appends lines of the input that have no record.
  void add_lines(std::string_view text, std::uint64_t lines);
  // Appends the lines of a record.
  void add_record(std::string_view text, std::uint64_t lines, const Record& record);
  // Takes back all lines from this place of the text on, which begins the line with this number.
  void cut(std::uint64_t line, std::size_t text_begin);

  const InputPlace& begin() const { return begin_; }
  InputPlace end() const;  // computes the digest
  std::uint64_t next_line() const { return next_line_; }
  std::string_view text() const { return text_; }
  std::string_view text_of(const Entry& entry) const {
    return std::string_view(text_).substr(entry.text_begin, entry.text_size);
  }
  std::string_view key_of(const Entry& entry) const { return view(entry.key_begin, entry.key_size); }
  std::size_t record_bytes() const { return bytes_.size(); }  // of keys and byte values
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t count(Use use) const;
  std::size_t integers() const;  // of those that are to be written

  // The transaction. Appends nothing, and returns false, if it would have no operation. `may_wait`: the transaction
  // before it may not have run yet.
  bool append_transaction(const ChunkRules& rules, bool may_wait, Batch* batch) const;
  // A transaction for each record that is to be written. It commits if the key exists.
  void append_probes(Batch* batch) const;
  // The entries to which append_probes() and append_transaction() refer, in their order.
  std::vector<std::size_t> written() const;
  // The entry that an error of the server names, if it names one.
  std::optional<std::size_t> entry_of(const ChunkRules& rules, const Error& error) const;

 private:
  std::string_view view(std::size_t begin, std::size_t size) const {
    return std::string_view(bytes_).substr(begin, size);
  }
  void append_puts(const ChunkRules& rules, Batch* batch) const;

  InputPlace begin_;
  std::uint64_t next_line_;
  std::string text_, bytes_;
  std::vector<Entry> entries_;
};

}  // namespace kilokv::client
