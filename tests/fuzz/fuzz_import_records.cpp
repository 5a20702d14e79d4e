// The readers of an import (client/cli/bulk): JSON lines, CSV, and what a position key holds. A record that is read can
// be written in both formats, and is read back from both. The first byte chooses what is read.
#include <string>
#include <string_view>

#include "client/cli/bulk/pair_text.hpp"
#include "client/cli/bulk/position.hpp"
#include "client/cli/bulk/record_parser.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

using client::Record;
using client::RecordParser;
using Taken = RecordParser::Taken;

client::ValueView view(const Record& record) {
  if (const auto* integer = std::get_if<std::int64_t>(&record.value)) return *integer;
  return std::get<std::string_view>(record.value);
}

std::string_view take_line(std::string_view* text) {
  const std::size_t end = text->find('\n');
  const std::string_view line = text->substr(0, end == std::string_view::npos ? text->size() : end + 1);
  text->remove_prefix(line.size());
  return line;
}

// The text is one record, which is equal to `record`.
void check_text(std::string_view text, RecordParser* parser, const Record& record, bool with_expiry) {
  Taken taken = Taken::nothing;
  while (!text.empty()) taken = parser->take(take_line(&text));
  KILOKV_CHECK(taken == Taken::record);
  KILOKV_CHECK(parser->record().key == record.key);
  KILOKV_CHECK(parser->record().value == record.value);
  KILOKV_CHECK(!with_expiry || parser->record().expires_at_us == record.expires_at_us);
  KILOKV_CHECK(parser->end() == Taken::nothing);
}

void check_record(const Record& record) {
  std::string json;
  client::append_json_pair(record.key, view(record), record.expires_at_us, &json);
  check_text(json, client::make_json_parser().get(), record, true);
  for (const char separator : {',', ';', '\t'}) {
    client::CsvColumns columns;
    columns.separator = separator;
    std::string csv = client::csv_header(separator);
    client::append_csv_pair(record.key, view(record), &csv, separator);
    check_text(csv, client::make_csv_parser(columns).get(), record, false);
  }
}

void check_all(RecordParser* parser, std::string_view text) {
  while (!text.empty()) {
    const Taken taken = parser->take(take_line(&text));
    if (taken == Taken::record) check_record(parser->record());
    if (taken == Taken::bad || taken == Taken::bad_header) KILOKV_CHECK(!parser->problem().empty());
    if (taken == Taken::bad_header) return;
  }
  if (parser->end() != Taken::nothing) KILOKV_CHECK(!parser->problem().empty());
}

void check_position(std::string_view text) {
  const auto position = client::parse_position(text);
  if (!position) return;
  const std::string written = client::position_text(*position, position->options.run);
  const auto again = client::parse_position(written);
  KILOKV_CHECK(again.has_value());
  KILOKV_CHECK(client::position_text(*again, again->options.run) == written);
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  std::string_view bytes = fuzz::text_of(data, size);
  switch (fuzz::take_choice(&bytes) % 4) {
    case 0: fuzz::check_all(client::make_json_parser().get(), bytes); break;
    case 1: fuzz::check_all(client::make_csv_parser({}).get(), bytes); break;
    case 2: fuzz::check_all(client::make_csv_parser({"k", "v", true}).get(), bytes); break;
    default: fuzz::check_position(bytes);
  }
  return 0;
}
