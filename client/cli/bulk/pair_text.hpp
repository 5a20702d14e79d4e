// One pair as text: a line of JSON, or a row of CSV. This file holds the rule for bytes, which is the same for keys and
// values, and for both formats (docs/bulk.md): text is written as text, and everything else as base64.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kilokv/results.hpp"

namespace kilokv::client {

// Whether the bytes are text: valid UTF-8 without control characters, except tab, line feed and carriage return.
bool is_text(std::string_view bytes);

// A string, or {"b64": "..."}.
void append_json_bytes(std::string_view bytes, std::string* out);
// {"key": ..., "value": ...}, with "expires_at_us" if the key expires (0: it does not), and a newline. Requires: the
// value is an integer or bytes.
void append_json_pair(std::string_view key, const ValueView& value, std::int64_t expires_at_us, std::string* out);

// A cell with this at its start holds base64. A text that begins so is written as base64, too.
inline constexpr std::string_view kBase64Mark = "b64:";
// Whether it can stand between cells: a tab, or a printable character that is in no number and in no base64, and no
// quote.
bool is_csv_separator(char c);
std::string csv_header(char separator = ',');  // with its newline
// The cells of the key and of the value, and a newline. Requires: the value is an integer or bytes. A byte value that a
// reader would take for an integer is written as base64.
void append_csv_pair(std::string_view key, const ValueView& value, std::string* out, char separator = ',');

// The bytes that a cell stands for. They are those of the cell, or of `decoded`. Empty: the cell holds wrong base64.
std::optional<std::string_view> bytes_of_cell(std::string_view cell, std::string* decoded);

}  // namespace kilokv::client
