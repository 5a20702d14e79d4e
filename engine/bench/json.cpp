#include "engine/bench/json.hpp"

#include <cmath>
#include <cstdio>

namespace kilokv::engine::bench {

void JsonWriter::string(std::string_view name, std::string_view value) {
  raw(name, {});
  quote(value);
}

void JsonWriter::number(std::string_view name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4f", value);
  raw(name, std::isfinite(value) ? text : "null");
}

void JsonWriter::exact(std::string_view name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  raw(name, std::isfinite(value) ? text : "null");
}

void JsonWriter::open(std::string_view name, char bracket) {
  raw(name, {});
  text_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
}

void JsonWriter::raw(std::string_view name, std::string_view value) {
  if (needs_comma_) text_ += ',';
  if (!name.empty()) {
    quote(name);
    text_ += ':';
  }
  text_ += value;
  needs_comma_ = true;
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') text_ += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) {
      text_ += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      text_ += escape;
    }
  }
  text_ += '"';
}

}  // namespace kilokv::engine::bench
