// The parser of CSV (record_parser.hpp), on libcsv in its strict mode. RFC 4180 is the form, with two rules that are
// exact where it leaves a choice: blanks belong to their cell, and lines end with LF or with CR LF.
//
// Cells may be separated by another character than a comma (CsvColumns).
//
// libcsv sees one line at a time, so that this file knows in which line a row ends. Quotes are counted for this: in a
// row that libcsv accepts, a newline stands inside of quotes if the number of quotes before it is odd.
#include <csv.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "client/cli/bulk/pair_text.hpp"
#include "client/cli/bulk/record_parser.hpp"
#include "client/cli/input_value.hpp"
#include "client/cli/utf8.hpp"

namespace kilokv::client {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kCellGrowth = std::size_t{64} << 10;  // libcsv's own 128 bytes copy a large cell too often

int never(unsigned char) { return 0; }
int is_line_feed(unsigned char c) { return c == '\n' ? 1 : 0; }

// The cells of one row after the other.
class Rows {
 public:
  explicit Rows(char separator) : separator_(separator) { start(); }
  ~Rows() { csv_free(&parser_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  // Drops a row that is not complete.
  void restart() {
    csv_free(&parser_);
    start();
  }

  // Reads text that ends with a line feed, or with any byte before one. Returns whether it has the form of CSV.
  bool read(std::string_view text) {
    return csv_parse(&parser_, text.data(), text.size(), &Rows::on_cell, &Rows::on_row, this) == text.size();
  }

  // Forgets the cells of the last row.
  void clear() {
    bytes_.clear();
    ends_.clear();
  }
  std::size_t cells() const { return ends_.size(); }
  std::string_view cell(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  void start() {
    if (csv_init(&parser_, CSV_STRICT) != 0) throw std::bad_alloc();
    csv_set_space_func(&parser_, &never);
    csv_set_term_func(&parser_, &is_line_feed);
    csv_set_delim(&parser_, static_cast<unsigned char>(separator_));
    csv_set_blk_size(&parser_, kCellGrowth);
    clear();
  }
  static void on_cell(void* bytes, std::size_t size, void* self) {
    auto* rows = static_cast<Rows*>(self);
    if (size != 0) rows->bytes_.append(static_cast<const char*>(bytes), size);
    rows->ends_.push_back(rows->bytes_.size());
  }
  static void on_row(int, void*) {}

  const char separator_;
  csv_parser parser_;
  std::string bytes_;
  std::vector<std::size_t> ends_;  // of the cells, in bytes_
};

class CsvRecords final : public RecordParser {
 public:
  explicit CsvRecords(CsvColumns columns) : columns_(std::move(columns)), rows_(columns_.separator) {}

  Taken take(std::string_view line) override {
    if (std::exchange(is_first_, false)) {
      if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
      if (line.starts_with('{')) {
        hint_ = "the input is read as CSV, and its first line begins as JSON; --format jsonl reads JSON lines";
      } else {
        hint_ = separator_hint(line);
      }
    }
    const bool has_newline = line.ends_with('\n');
    in_quotes_ = in_quotes_ != (std::count(line.begin(), line.end(), '"') % 2 != 0);
    if (has_newline && !in_quotes_) {
      line.remove_suffix(line.ends_with("\r\n") ? 2 : 1);
      if (line.empty() && !is_open_ && !needs_header()) return Taken::nothing;
    }
    if (!is_open_) rows_.clear();
    const bool is_csv = rows_.read(line) && (in_quotes_ || !has_newline || rows_.read("\n"));
    if (!is_csv) return drop("a quote stands inside of a cell, or text after the quote that ends a cell");
    if (!has_newline) return drop_unfinished();
    is_open_ = in_quotes_;
    if (is_open_) return Taken::part;
    return needs_header() ? take_header() : take_row();
  }

  Taken end() override {
    if (is_open_) return drop_unfinished();
    return needs_header() ? refuse(Taken::bad_header, wanted_header("the input is empty")) : Taken::nothing;
  }

  bool needs_header() const override { return width_ == 0; }

 private:
  Taken drop(std::string problem) {
    rows_.restart();
    in_quotes_ = is_open_ = false;
    if (needs_header()) return refuse(Taken::bad_header, wanted_header(problem));
    return refuse(Taken::bad, std::move(problem));
  }

  Taken drop_unfinished() {
    return drop(in_quotes_ ? "the input ends inside of quotes"
                           : "the last line has no newline at its end, so it may be cut off; add one if it is whole");
  }

  // If another separator is in the first line, maybe it is the one of this file.
  std::string separator_hint(std::string_view line) const {
    for (const auto& [other, flag] : {std::pair(';', "--separator ';'"), std::pair('\t', "--separator tab"),
                                      std::pair('|', "--separator '|'"), std::pair(',', "no --separator")}) {
      if (other == columns_.separator || line.find(other) == std::string_view::npos) continue;
      const std::string name = other == '\t' ? "a tab" : std::string("\"") + other + "\"";
      return "the header has " + name + "; if this separates its cells, give " + flag;
    }
    return {};
  }

  // The columns as they were read, as far as a message has room for them.
  std::string header_text() const {
    constexpr std::size_t kBytesMax = 200;
    std::string text;
    for (std::size_t i = 0; i < rows_.cells(); ++i) {
      text.append(i == 0 ? "\"" : ", \"").append(rows_.cell(i)).append("\"");
    }
    return text.size() <= kBytesMax ? text : std::string(utf8_prefix(text, kBytesMax)) + "...";
  }

  std::string wanted_header(const std::string& problem) const {
    return problem + "; the first line must be a header with the columns " + columns_.key + " and " + columns_.value;
  }

  Taken take_header() {
    const auto find = [&](const std::string& name, std::size_t* at) {
      std::size_t count = 0;
      for (std::size_t i = 0; i < rows_.cells(); ++i) {
        if (rows_.cell(i) != name) continue;
        *at = i;
        ++count;
      }
      return count;
    };
    for (const auto& [name, at] : {std::pair(&columns_.key, &key_at_), std::pair(&columns_.value, &value_at_)}) {
      const std::size_t count = find(*name, at);
      if (count == 0) {
        return refuse(Taken::bad_header,
                      wanted_header("there is no column " + *name + "; the header was read as " + header_text()));
      }
      if (count > 1) return refuse(Taken::bad_header, "the header has the column " + *name + " more than once");
    }
    width_ = rows_.cells();
    hint_.clear();
    return Taken::nothing;
  }

  Taken take_row() {
    if (rows_.cells() != width_) {
      return refuse(Taken::bad, "the row has " + std::to_string(rows_.cells()) + " cells, and the header has " +
                                    std::to_string(width_));
    }
    const std::string_view key = rows_.cell(key_at_), value = rows_.cell(value_at_);
    if (!is_utf8(key)) return refuse(Taken::bad, not_utf8(columns_.key));
    if (!is_utf8(value)) return refuse(Taken::bad, not_utf8(columns_.value));
    const auto key_bytes = bytes_of_cell(key, &key_);
    if (!key_bytes) return refuse(Taken::bad, wrong_base64(columns_.key));
    if (key_bytes->empty()) return refuse(Taken::bad, "the key is empty");
    record_.key = *key_bytes;
    return take_value(value);
  }

  Taken take_value(std::string_view cell) {
    if (cell.starts_with(kBase64Mark)) {
      const auto bytes = bytes_of_cell(cell, &value_);
      if (!bytes) return refuse(Taken::bad, wrong_base64(columns_.value));
      record_.value = *bytes;
      return Taken::record;
    }
    const auto value = parse_value(cell, columns_.values_as_bytes);
    if (!value) {
      return refuse(Taken::bad, "the value " + std::string(cell) +
                                    " is outside the signed 64-bit range; --bytes stores its digits as bytes");
    }
    record_.value = *value;
    return Taken::record;
  }

  static std::string not_utf8(const std::string& column) {
    return "the cell of the column " + column + " is not UTF-8; write such bytes as b64: and base64";
  }
  static std::string wrong_base64(const std::string& column) {
    return "the cell of the column " + column + " begins with b64:, and what follows is not base64";
  }

  const CsvColumns columns_;
  Rows rows_;
  bool is_first_ = true;
  bool in_quotes_ = false;  // at the end of the last line
  bool is_open_ = false;    // whether the row goes on in the next line
  std::size_t width_ = 0;   // cells of the header; 0: it was not read yet
  std::size_t key_at_ = 0, value_at_ = 0;
  std::string key_, value_;  // decoded bytes of record_
};

}  // namespace

std::unique_ptr<RecordParser> make_csv_parser(const CsvColumns& columns) {
  return std::make_unique<CsvRecords>(columns);
}

}  // namespace kilokv::client
