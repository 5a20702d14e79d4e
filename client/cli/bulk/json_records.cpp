// The parser of JSON lines (record_parser.hpp): each line is an object with a key and a value. nlohmann skips a mark of
// the byte order. A wrong field throws inside of this file (json_fields.hpp). No exception leaves it.
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "client/cli/bulk/record_parser.hpp"
#include "client/cli/json_fields.hpp"
#include "client/cli/json_stream.hpp"

namespace kilokv::client {
namespace {

using Json = nlohmann::json;

class JsonRecords final : public RecordParser {
 public:
  Taken take(std::string_view line) override {
    const std::size_t end = line.find_last_not_of(" \t\r\n");
    if (end == std::string_view::npos) return Taken::nothing;
    line = line.substr(0, end + 1);
    const bool is_first = std::exchange(is_first_, false);
    if (is_first && line.find('{') == std::string_view::npos) {
      hint_ = "the input is read as JSON lines, and its first line is no JSON object; --format csv reads CSV";
    }
    try {
      read(fields::parse(line));
      return Taken::record;
    } catch (const Json::parse_error& error) {
      return refuse(Taken::bad, problem_of(line, error.byte == 0 ? 0 : error.byte - 1));
    } catch (const Json::out_of_range&) {  // parse() throws no other exception here
      return refuse(Taken::bad, "a number is too large");
    } catch (const std::exception& error) {
      return refuse(Taken::bad, error.what());
    }
  }

  Taken end() override { return Taken::nothing; }
  bool needs_header() const override { return false; }

 private:
  // The caller knows the number of the line, so only the column is left of the position.
  static std::string problem_of(std::string_view line, std::size_t at) {
    std::string text = json_problem(line, at, {});
    const std::size_t column = text.find("column ");
    return column == std::string::npos ? text : text.substr(column);
  }

  void read(const Json& object) {
    static const std::vector<std::string> kNames = {"key", "value", "version",  // `scan` prints the version
                                                    "expires_at_us"};
    if (!object.is_object()) fields::fail("this is no JSON object with a key and a value");
    fields::check_names(object, kNames);
    key_ = fields::bytes(fields::member(object, "key"), "key");
    if (key_.empty()) fields::fail("the key is empty");
    record_.key = key_;
    record_.expires_at_us = 0;
    if (const auto expiry = object.find("expires_at_us"); expiry != object.end()) {
      record_.expires_at_us = fields::integer<std::int64_t>(*expiry, "expires_at_us");
      if (record_.expires_at_us < 1) fields::fail("\"expires_at_us\" is not a time: " + fields::shown(*expiry));
    }
    const Json& value = fields::member(object, "value");
    if (value.is_number()) {
      record_.value = fields::integer<std::int64_t>(value, "value");
      return;
    }
    if (!value.is_string() && !value.is_object()) {
      fields::fail("\"value\" is neither an integer, nor a string, nor {\"b64\": \"...\"}: " + fields::shown(value));
    }
    value_ = fields::bytes(value, "value");
    record_.value = std::string_view(value_);
  }

  bool is_first_ = true;     // no line with text has been taken yet
  std::string key_, value_;  // of record_
};

}  // namespace

std::unique_ptr<RecordParser> make_json_parser() { return std::make_unique<JsonRecords>(); }

}  // namespace kilokv::client
