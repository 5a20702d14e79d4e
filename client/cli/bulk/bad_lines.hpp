// The file into which an import sets bad lines aside. Each of its lines is a JSON object:
//
//   {"line": 17, "problem": "the key is empty", "text": ",5\n", "position_key": "import/1"}
//
// `text` has the bytes of the record in the input, in the form of every byte value (docs/bulk.md). Without a position
// key there is no such field. An import that continues leaves the lines before its position in the file, and removes
// all others, because it meets those again.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "client/cli/bulk/file_output.hpp"

namespace kilokv::client {

class BadLines {
 public:
  // `position_key`: of the import; empty: it has none.
  explicit BadLines(std::string position_key) : position_key_(std::move(position_key)) {}
  ~BadLines();
  BadLines(const BadLines&) = delete;
  BadLines& operator=(const BadLines&) = delete;

  // Refuses a file that exists.
  [[nodiscard]] static FileProblem check_new(const std::string& path);
  // Makes the file, which only its owner may read. Refuses a file that exists.
  [[nodiscard]] FileProblem create(const std::string& path);
  // Opens the file of an import that continues at `line`, or makes it. Refuses a file of another import, or of
  // another kind.
  [[nodiscard]] FileProblem resume(const std::string& path, std::uint64_t line);
  bool is_open() const { return descriptor_ >= 0; }

  [[nodiscard]] FileProblem add(std::uint64_t line, std::string_view problem, std::string_view text);
  // Makes the lines durable. Does nothing if there are no new ones.
  [[nodiscard]] FileProblem sync();

  std::uint64_t count() const { return count_; }  // lines in the file

 private:
  FileProblem open(const std::string& path, int flags);

  const std::string position_key_;
  std::string path_;
  int descriptor_ = -1;
  bool is_dirty_ = false;
  std::uint64_t count_ = 0;
};

}  // namespace kilokv::client
