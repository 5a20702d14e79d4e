// Role: see json_stream.hpp.
#include "client/cli/json_stream.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/cli/utf8.hpp"

namespace kilokv::client {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kPunctuation = "{}[]:,";

bool is_space(int c) { return c >= 0 && kSpace.find(static_cast<char>(c)) != std::string_view::npos; }

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The UTF-8 character at the start of `text`. Empty if there is none.
std::string_view character(std::string_view text) { return text.substr(0, utf8_length(text)); }

// The end of the token that begins at `begin`. A token is a string with its quotes, a punctuation character, or a run
// of other characters.
std::size_t token_end(std::string_view text, std::size_t begin) {
  if (kPunctuation.find(text[begin]) != std::string_view::npos) return begin + 1;
  std::size_t end = begin + 1;
  if (text[begin] == '"') {
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  while (end < text.size() && !is_space(text[end]) && text[end] != '"' &&
         kPunctuation.find(text[end]) == std::string_view::npos) {
    ++end;
  }
  return end;
}

struct Part {
  std::size_t begin, end;
};

// The part of the text that is wrong. The parser stopped at the character `at`. The part is a whole token if the parser
// stopped at its last character or just after it. It is a single character if the parser stopped inside a string.
Part wrong_part(std::string_view text, std::size_t at) {
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = begin + 1;
    if (is_space(text[begin])) continue;
    end = token_end(text, begin);
    const bool is_string = text[begin] == '"';
    const bool is_word = !is_string && kPunctuation.find(text[begin]) == std::string_view::npos;
    if (is_word && !nlohmann::json::accept(text.substr(begin, end - begin))) return {begin, end};
    if (at >= end) continue;
    const bool at_its_end = at + 1 == end && at > begin && text[at] == '"';
    if (!is_string || at_its_end) return {begin, end};
    break;
  }
  return {at, at + std::max<std::size_t>(1, character(text.substr(at)).size())};
}

std::string shown(std::string_view text) {
  constexpr std::size_t kCharactersMax = 40;
  std::string out;
  std::size_t count = 0;
  while (!text.empty() && count++ < kCharactersMax) {
    const std::string_view next = character(text);
    if (next.empty()) break;
    out.append(next);
    text.remove_prefix(next.size());
  }
  return text.empty() ? out : out + "...";
}

}  // namespace

void TextPosition::advance(char c) {
  if (c == '\n') {
    ++line;
    column = 1;
  } else if (!continues_character(c)) {
    ++column;
  }
}

std::string to_string(TextPosition position) {
  return "line " + std::to_string(position.line) + ", column " + std::to_string(position.column);
}

int JsonStream::get() {
  const int c = input_->get();
  if (c != kEnd) position_.advance(static_cast<char>(c));
  return c;
}

bool JsonStream::read_string(std::string* text) {
  bool escaped = false;
  while (input_->peek() != kEnd && input_->peek() != '\n') {
    const auto c = static_cast<char>(get());
    text->push_back(c);
    if (c == '"' && !escaped) return true;
    escaped = c == '\\' && !escaped;
  }
  return false;
}

std::optional<JsonText> JsonStream::next() {
  while (is_space(input_->peek())) get();
  if (input_->peek() == kEnd) return std::nullopt;
  JsonText value;
  value.begin = position_;
  for (std::size_t depth = 0; input_->peek() != kEnd;) {
    const int next = input_->peek();
    if (depth == 0 && is_space(next)) break;
    const auto c = static_cast<char>(get());
    value.text.push_back(c);
    if (c == '"' && !read_string(&value.text)) {
      if (input_->peek() == '\n') value.text.push_back('\n');  // so that the error shows the newline in the string
      break;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') depth -= depth == 0 ? 0 : 1;
    if (depth == 0 && (c == '}' || c == ']')) break;
  }
  return value;
}

std::string json_problem(std::string_view text, std::size_t at, TextPosition begin) {
  const Part wrong = at >= text.size() ? Part{text.size(), text.size()} : wrong_part(text, at);
  TextPosition position = begin;
  for (const char c : text.substr(0, wrong.begin)) position.advance(c);
  const std::string where = to_string(position) + ": this is not JSON: ";
  if (wrong.begin == text.size()) return where + "the text ends too early: a bracket or a quote is not closed";
  const std::string_view part = text.substr(wrong.begin, wrong.end - wrong.begin);
  if (part == "\n") return where + "the line ends inside a string";
  if (static_cast<unsigned char>(part.front()) < ' ') return where + "unexpected control character";
  if (character(part).empty()) return where + "a byte that is not UTF-8";
  return where + "unexpected " + shown(part);
}

}  // namespace kilokv::client
