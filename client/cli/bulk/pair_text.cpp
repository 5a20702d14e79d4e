// Role: see pair_text.hpp.
#include "client/cli/bulk/pair_text.hpp"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <cstdint>
#include <variant>

#include "client/cli/input_value.hpp"
#include "client/cli/utf8.hpp"
#include "client/measure/csv.hpp"

namespace kilokv::client {
namespace {

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
}

void append_base64(std::string_view bytes, std::string* out) {
  out->append(absl::Base64Escape(absl::string_view(bytes.data(), bytes.size())));
}

void append_json_string(std::string_view text, std::string* out) {
  out->push_back('"');
  for (const char c : text) {
    switch (c) {
      case '"': out->append("\\\""); break;
      case '\\': out->append("\\\\"); break;
      case '\n': out->append("\\n"); break;
      case '\r': out->append("\\r"); break;
      case '\t': out->append("\\t"); break;
      default: out->push_back(c);
    }
  }
  out->push_back('"');
}

bool looks_like_an_integer(std::string_view bytes) {
  const auto value = parse_value(bytes, false);
  return !value || std::holds_alternative<std::int64_t>(*value);
}

void append_bytes_cell(std::string_view bytes, bool as_base64, char separator, std::string* out) {
  if (as_base64 || bytes.starts_with(kBase64Mark) || !is_text(bytes)) {
    out->append(kBase64Mark);
    append_base64(bytes, out);
  } else {
    bench::append_csv_cell(bytes, separator, out);
  }
}

}  // namespace

bool is_text(std::string_view bytes) { return std::none_of(bytes.begin(), bytes.end(), is_control) && is_utf8(bytes); }

void append_json_bytes(std::string_view bytes, std::string* out) {
  if (is_text(bytes)) return append_json_string(bytes, out);
  out->append("{\"b64\": \"");
  append_base64(bytes, out);
  out->append("\"}");
}

void append_json_pair(std::string_view key, const ValueView& value, std::int64_t expires_at_us, std::string* out) {
  out->append("{\"key\": ");
  append_json_bytes(key, out);
  out->append(", \"value\": ");
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    out->append(std::to_string(*integer));
  } else {
    append_json_bytes(std::get<std::string_view>(value), out);
  }
  if (expires_at_us != 0) out->append(", \"expires_at_us\": ").append(std::to_string(expires_at_us));
  out->append("}\n");
}

bool is_csv_separator(char c) {
  if (c == '\t') return true;
  const bool is_digit = c >= '0' && c <= '9', is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return c > ' ' && c < '\x7F' && !is_digit && !is_letter &&
         std::string_view("\"+-/:=").find(c) == std::string_view::npos;
}

std::string csv_header(char separator) { return std::string("key") + separator + "value\n"; }

void append_csv_pair(std::string_view key, const ValueView& value, std::string* out, char separator) {
  append_bytes_cell(key, false, separator, out);
  out->push_back(separator);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    out->append(std::to_string(*integer));
  } else {
    const std::string_view bytes = std::get<std::string_view>(value);
    append_bytes_cell(bytes, looks_like_an_integer(bytes), separator, out);
  }
  out->push_back('\n');
}

std::optional<std::string_view> bytes_of_cell(std::string_view cell, std::string* decoded) {
  if (!cell.starts_with(kBase64Mark)) return cell;
  const std::string_view base64 = cell.substr(kBase64Mark.size());
  if (!absl::Base64Unescape(absl::string_view(base64.data(), base64.size()), decoded)) return std::nullopt;
  return *decoded;
}

}  // namespace kilokv::client
