// Writes one JSON document, field by field. It writes commas and escapes by itself. The caller takes care of the
// nesting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kilokv::engine::bench {

class JsonWriter {
 public:
  void begin_object(std::string_view name = {}) { open(name, '{'); }
  void end_object() { close('}'); }
  void begin_array(std::string_view name) { open(name, '['); }
  void end_array() { close(']'); }

  // Each writes a field of an object, or, with an empty name, an element of an array.
  void string(std::string_view name, std::string_view value);
  void integer(std::string_view name, std::uint64_t value) { raw(name, std::to_string(value)); }
  void number(std::string_view name, double value);  // four digits after the point; null if not finite
  void exact(std::string_view name, double value);   // all digits; null if not finite
  void boolean(std::string_view name, bool value) { raw(name, value ? "true" : "false"); }

  const std::string& text() const { return text_; }

 private:
  void open(std::string_view name, char bracket);
  void close(char bracket);
  void raw(std::string_view name, std::string_view value);
  void quote(std::string_view text);

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace kilokv::engine::bench
