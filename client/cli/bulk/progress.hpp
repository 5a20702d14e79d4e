// Prints a line about the progress of a command on standard error, once a second. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kilokv::client {

// What the flags --progress and --quiet say. With neither of them, progress is for a terminal: in a log or in a pipe,
// nobody watches it.
struct ProgressFlags {
  bool always = false, never = false;
};
bool shows_progress(const ProgressFlags& flags);

class ProgressLine {
 public:
  explicit ProgressLine(bool is_shown);
  // Prints the line, if one is due. Cheap if none is.
  void tick(const std::function<std::string()>& line);
  std::int64_t elapsed_us() const;

 private:
  const bool is_shown_;
  const std::int64_t began_us_;
  std::int64_t due_us_;
};

// Items in a second, such as 1,234,567/s.
std::string rate_text(std::uint64_t count, std::int64_t elapsed_us);
double rate_of(std::uint64_t count, std::int64_t elapsed_us);

}  // namespace kilokv::client
