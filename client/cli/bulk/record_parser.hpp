// Reads the records of an import, from the lines of a file: each record is a key with its value. There is a parser for
// JSON lines and one for CSV. docs/bulk.md describes both formats.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace kilokv::client {

enum class BulkFormat : std::uint8_t { json_lines, csv };

// How the columns of a CSV file are read.
struct CsvColumns {
  std::string key = "key", value = "value";  // their names in the header
  bool values_as_bytes = false;              // bytes, also where a value is written as an integer
  char separator = ',';                      // between cells; is_csv_separator() (pair_text.hpp)
};

struct Record {  // its views are valid until the parser takes the next line
  std::string_view key;
  std::variant<std::int64_t, std::string_view> value;
  std::int64_t expires_at_us = 0;  // when the key expires; 0: never
};

class RecordParser {
 public:
  enum class Taken : std::uint8_t {
    nothing,     // an empty line, or the header
    part,        // the record goes on in the next line
    record,      // record() has the whole record, which ends with this line
    bad,         // problem() says why there is no record; the next line begins a new one
    bad_header,  // problem() says why; no further line can be read
  };

  virtual ~RecordParser() = default;
  // Takes the next line, with its newline. The last line may lack it.
  virtual Taken take(std::string_view line) = 0;
  // The input has ended. Returns `bad` if a record is not complete, and `bad_header` if there was no header.
  virtual Taken end() = 0;
  // Whether it waits for the header, which the first line begins.
  virtual bool needs_header() const = 0;

  const Record& record() const { return record_; }
  const std::string& problem() const { return problem_; }
  // What to try, if the first line looks like a file of another form. Empty: it does not.
  const std::string& hint() const { return hint_; }

 protected:
  Taken refuse(Taken how, std::string problem) {
    problem_ = std::move(problem);
    return how;
  }

  Record record_;
  std::string problem_, hint_;
};

std::unique_ptr<RecordParser> make_json_parser();
std::unique_ptr<RecordParser> make_csv_parser(const CsvColumns& columns);

}  // namespace kilokv::client
