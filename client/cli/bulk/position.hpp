// How far an import has come: the value of its position key. Each transaction of the import writes it, and has a guard
// that it is still what the transaction before it has written. So every record is applied once, whatever is killed.
//
//   {"format": "kilokv-import-1", "records": "jsonl", "existing": "keep", "line": 1001, "bytes": 34567,
//    "digest": "00112233445566778899aabbccddeeff", "run": "0123456789abcdef"}
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kilokv::client {

// The digest (XXH3, 128 bits) of all bytes that were added.
class Digest {
 public:
  Digest();
  Digest(const Digest& other);
  Digest& operator=(const Digest& other);
  ~Digest();
  void add(std::string_view bytes);
  std::string text() const;  // 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A place between two lines of the input.
struct InputPlace {
  std::uint64_t line = 1;   // the number of the next line
  std::uint64_t bytes = 0;  // before it
  Digest digest = {};       // of those bytes
};

// What a run of an import says in each position that it writes.
struct PositionOptions {
  std::string records;   // the format, and for CSV the columns
  std::string existing;  // overwrite, keep or refuse
  std::string run;       // a number of this run alone: what an earlier run has sent finds another one, and does nothing
};

struct Position {
  PositionOptions options;
  std::uint64_t line = 1, bytes = 0;
  std::string digest;
};

std::string position_text(const PositionOptions& options, const InputPlace& place);
// The same with another run.
std::string position_text(const Position& position, const std::string& run);
// Empty: the text is not a position.
std::optional<Position> parse_position(std::string_view text);

// A number for PositionOptions::run.
std::string new_run();

}  // namespace kilokv::client
