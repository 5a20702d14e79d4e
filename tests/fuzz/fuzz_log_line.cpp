// What clients send and the log repeats: the trace of a request, and texts in fields of a line
// (server/core/trace_parent.cpp, server/log_format.cpp). A trace that is accepted is written as it came. A text stays
// the value of its field, whatever is in it, and the object of the line is one line of JSON.
#include <nlohmann/json.hpp>
#include <string>

#include "server/core/one_line.hpp"
#include "server/core/trace_parent.hpp"
#include "server/log_format.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;

void check_trace(std::string_view text) {
  const auto parent = parse_traceparent(text);
  if (!parent) return;
  KILOKV_CHECK(parent->present() && text.size() <= kTraceParentBytesMax);
  KILOKV_CHECK(trace_text(*parent) == text.substr(3, 32) && span_text(*parent) == text.substr(36, 16));
}

void check_field(std::string_view text) {
  const std::string line = "kilokvd says text=\"" + one_line(text) + "\" times=2";
  const LogLine parsed = parse_log_line(line);
  KILOKV_CHECK(parsed.message == "kilokvd says" && parsed.fields.size() == 2 && parsed.text.empty());
  KILOKV_CHECK(parsed.fields[0].name == "text" && parsed.fields[1].name == "times");
  const std::string object = log_object("time", "info", line);
  KILOKV_CHECK(object.find('\n') == std::string::npos);
  const nlohmann::json read = nlohmann::json::parse(object);
  KILOKV_CHECK(read.size() == 5 && read["text"].is_string() && read["times"] == 2);
  // One in UTF-8 comes through as it was.
  if (nlohmann::json::accept('"' + std::string(text) + '"') && text.find('\\') == std::string_view::npos) {
    KILOKV_CHECK(read["text"].get<std::string>() == text);
  }
}

// A line of a library or of a later version of this program.
void check_line(std::string_view text) {
  const LogLine parsed = parse_log_line(text);
  KILOKV_CHECK(parsed.message.size() <= text.size());
  const nlohmann::json read = nlohmann::json::parse(log_object("time", "info", text));
  KILOKV_CHECK(read.is_object() && read.size() >= 3 + parsed.fields.size());
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::check_trace(text);
  fuzz::check_field(text);
  fuzz::check_line(text);
  return 0;
}
