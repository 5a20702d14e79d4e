// Reads a file or a pipe line by line. A pipe that is silent does not block for long, so that the caller can send what
// it has, and can look for signals.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::client {

class LineInput {
 public:
  enum class Got : std::uint8_t {
    line,
    idle,      // nothing came for a while
    end,       // of the input
    too_long,  // the line is longer than kLineBytesMax
    failed,    // errno says why
  };
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;

  // Requires: `descriptor` stays open as long as this object.
  explicit LineInput(int descriptor, int idle_after_ms = 100);

  // The next line with its newline, which the last line may lack. The view is valid until the next call.
  Got next(std::string_view* line);
  // The next bytes, at most `most`, whatever lines they are part of. Never empty if it returns Got::line.
  Got next_bytes(std::size_t most, std::string_view* bytes);

  // The size of a regular file. 0: it is not known.
  std::uint64_t size() const { return size_; }

 private:
  Got fill();  // reads more after end_

  const int descriptor_;
  const int idle_after_ms_;
  std::uint64_t size_ = 0;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what was read and not yet taken
  std::size_t searched_ = 0;         // bytes after begin_ without a newline
  bool is_over_ = false;
};

}  // namespace kilokv::client
