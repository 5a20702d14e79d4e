// The forms of a line of the log (--log-format). As text, a line is
//
//   2026-11-20T12:46:34.604438Z info kilokvd ready endpoint=127.0.0.1:7070 device_reason="this build has no CUDA"
//
// that is: time, level, a message, and after it fields NAME=VALUE. A value with blanks, and each text of somebody else,
// is in double quotes, escaped by one_line() (core/one_line.hpp). As JSON, the same line is an object:
//
//   {"time":"2026-11-20T12:46:34.604438Z","level":"info","message":"kilokvd ready","endpoint":"127.0.0.1:7070",
//    "device_reason":"this build has no CUDA"}
//
// Code that logs writes the text. The object is read from it, so no line has to be written twice. What is not
// NAME=VALUE up to the end of the line belongs to the message.
//
// Thread safety: pure functions; a formatter belongs to one sink, which locks.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::server {

struct LogField {
  std::string_view name, value;  // the value as it is in the line, with its quotes
};
struct LogLine {
  std::string_view message;
  std::vector<LogField> fields;
  std::string_view text;  // further lines, such as a batch
};

// The parts of a line, without its time and level.
LogLine parse_log_line(std::string_view line);

// The object of a line. Bytes that are not UTF-8 become U+FFFD. Whole numbers, fractions, true and false are no
// strings, unless they are identifiers: an id may have digits only.
std::string log_object(std::string_view time, std::string_view level, std::string_view line);

// `format`: text or json.
std::unique_ptr<spdlog::formatter> make_log_formatter(const std::string& format);

}  // namespace kilokv::server
