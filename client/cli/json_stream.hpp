// Reads JSON values one after the other, each on one or more lines. Knows where each value begins, and where a value is
// wrong. A value is complete with its last bracket. So a program that writes transactions into a pipe need not close
// it.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>

namespace kilokv::client {

struct TextPosition {
  std::uint64_t line = 1, column = 1;  // a column is a UTF-8 character
  void advance(char c);
};
std::string to_string(TextPosition position);  // such as: line 3, column 7

struct JsonText {
  std::string text;
  TextPosition begin;
};

class JsonStream {
 public:
  explicit JsonStream(std::istream* input) : input_(input) {}
  // The text of the next value, which may be malformed JSON. Empty at the end of the input. A line that ends inside a
  // string ends the value.
  std::optional<JsonText> next();

 private:
  static constexpr int kEnd = std::char_traits<char>::eof();
  int get();                            // the next character, or kEnd
  bool read_string(std::string* text);  // after its opening quote; false: the line or the input ended first

  std::istream* const input_;
  TextPosition position_;
};

// Says what is wrong, and where, in a text that is not JSON. `at`: the index of the last character that could be read,
// or the size of the text if the text ends too early. `begin`: the position of the first character of the text.
std::string json_problem(std::string_view text, std::size_t at, TextPosition begin);

}  // namespace kilokv::client
