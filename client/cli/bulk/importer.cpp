// Role: see importer.hpp.
#include "client/cli/bulk/importer.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "client/cli/bulk/position_claim.hpp"
#include "client/cli/output.hpp"
#include "client/cli/utf8.hpp"
#include "client/command_line/interrupt.hpp"
#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

constexpr std::size_t kRecordBytesMax = std::size_t{1} << 20;  // of a chunk: well below a server's limit of a message
constexpr std::size_t kTextBytesMax = std::size_t{8} << 20;    // of a chunk, with lines that have no record
constexpr std::size_t kProblemBytesMax = 300;  // a problem may show a part of the input, which may be long

std::string records_text(const ImportOptions& options) {
  const char* integers = options.integers_only ? ", integers only" : "";
  if (options.format == BulkFormat::json_lines) return std::string("jsonl") + integers;
  const CsvColumns& columns = options.columns;
  std::string text = "csv with the columns " + key_text(columns.key) + " and " + key_text(columns.value) +
                     (columns.values_as_bytes ? " as bytes" : "");
  if (columns.separator != ',') {
    text += std::string(", separated by ") + (columns.separator == '\t' ? "tab" : std::string(1, columns.separator));
  }
  return text + integers;
}

std::string no_integer(std::string_view value) {
  constexpr std::size_t kShownMax = 40;
  const std::string_view shown = value.substr(0, kShownMax);
  return "the value \"" + key_text(shown) + (shown.size() < value.size() ? "..." : "") +
         "\" is not written as integers are printed, and would be bytes (--integers)";
}

std::string unreadable() { return "cannot read the input: " + std::generic_category().message(errno); }

std::uint64_t hash_of(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

}  // namespace

Importer::Importer(Client* client, ImportOptions options, int descriptor)
    : client_(client),
      options_(std::move(options)),
      input_(descriptor),
      parser_(options_.format == BulkFormat::csv ? make_csv_parser(options_.columns) : make_json_parser()),
      position_options_{records_text(options_), to_string(options_.existing), new_run()},
      bad_lines_(options_.position_key),
      chunk_(std::make_unique<Chunk>(InputPlace{})),
      progress_(options_.shows_progress) {}

ImportReport Importer::run() {
  report_.has_begun = begin();
  if (report_.has_begun) {
    read_all();
    sender_->finish();
    if (FileProblem problem = bad_lines_.sync(); !problem.empty()) stop_at_file(problem);
    report_.totals = sender_->totals();
    const std::uint64_t first_line = report_.continued_at.value_or(1);
    report_.totals.line = std::max(report_.totals.line, first_line);
    report_.totals.line_max = std::max(report_.totals.line_max, first_line);
    if (!report_.error) report_.error = sender_->error();
  }
  report_.hint = parser_->hint();
  report_.bad_lines = bad_lines_.count();
  report_.elapsed_us = progress_.elapsed_us();
  return report_;
}

bool Importer::stop(std::string problem) {
  if (report_.input_problem.empty()) report_.input_problem = std::move(problem);
  return false;
}

bool Importer::stop_at_file(FileProblem problem) {
  report_.is_file_problem = report_.is_file_problem || report_.input_problem.empty();
  return stop(std::move(problem));
}

bool Importer::fail(Error error) {
  report_.error = std::move(error);
  return false;
}

bool Importer::begin() {
  auto session = client_->open_session({.requests_in_flight_max = options_.in_flight + 1});
  if (!session) return fail(session.error());
  if (!options_.position_key.empty()) {
    if (!go_on(session->get())) return false;
  } else if (!options_.bad_lines_file.empty()) {
    const FileProblem problem = bad_lines_.create(options_.bad_lines_file);
    if (!problem.empty()) return stop_at_file(problem);
  }
  make_sender(std::move(*session));
  return true;
}

void Importer::make_sender(std::unique_ptr<Session> session) {
  ChunkRules rules;
  rules.existing = options_.existing;
  rules.position_key = options_.position_key;
  rules.position = position_options_;
  ChunkSender::Callbacks callbacks;
  callbacks.leave_out = [this](std::uint64_t line, std::string_view problem, std::string_view text) {
    return set_aside(line, problem, text);
  };
  callbacks.before_sending = [this] {
    const FileProblem problem = bad_lines_.sync();
    return problem.empty() || stop_at_file(problem);
  };
  callbacks.while_waiting = [this] { tick(); };
  sender_ = std::make_unique<ChunkSender>(std::move(session), std::move(rules), options_.in_flight, options_.call,
                                          std::move(callbacks));
}

// Finds the place up to which earlier runs have come, and makes the position that of this run. The input is checked
// before, so that a run with a wrong input does not end another run that is under way.
bool Importer::go_on(Session* session) {
  const std::string& key = options_.position_key;
  const auto seen = read_position(client_, key, position_options_);
  if (!seen) return fail(seen.error());
  InputPlace place;
  if (*seen ? !skip_to(**seen, &place) : !check_bad_lines()) return false;
  const auto claimed = claim_position(client_, session, key, position_options_, options_.call);
  if (!claimed) return fail(claimed.error());
  if (!*claimed && *seen) {
    return stop("the position key " + key_text(key) +
                " was deleted when this import began; run the command again to begin with the first line");
  }
  if (*claimed) {
    report_.continued_at = (*claimed)->line;
    if (!skip_to(**claimed, &place)) return false;  // another run may have come further meanwhile
    chunk_ = std::make_unique<Chunk>(place);
  }
  if (options_.bad_lines_file.empty()) return true;
  const FileProblem problem = bad_lines_.resume(options_.bad_lines_file, report_.continued_at.value_or(1));
  return problem.empty() || stop_at_file(problem);
}

// For the first run of an import: its file of bad lines must be new.
bool Importer::check_bad_lines() {
  const std::string& file = options_.bad_lines_file;
  const FileProblem problem = file.empty() ? FileProblem() : BadLines::check_new(file);
  return problem.empty() || stop_at_file(problem);
}

// The parser has to know the header. A position is never inside of it.
bool Importer::skip_header(const Position& position, InputPlace* place) {
  while (parser_->needs_header() && place->bytes < position.bytes) {
    std::string_view line;
    const LineInput::Got got = input_.next(&line);
    if (is_interrupted()) return false;
    if (got == LineInput::Got::idle) continue;
    if (got != LineInput::Got::line) return true;  // skip_to() says that it is another input
    place->digest.add(line);
    place->bytes += line.size();
    if (parser_->take(line) == RecordParser::Taken::bad_header) return stop("line 1: " + parser_->problem());
  }
  return true;
}

// Reads the input from `place` up to the position, and checks that it is the one that was imported before.
bool Importer::skip_to(const Position& position, InputPlace* place) {
  if (!skip_header(position, place)) return false;
  while (place->bytes < position.bytes) {
    std::string_view bytes;
    const LineInput::Got got = input_.next_bytes(position.bytes - place->bytes, &bytes);
    if (is_interrupted()) return false;
    if (got == LineInput::Got::idle) continue;
    if (got == LineInput::Got::failed) return stop_at_file(unreadable());
    if (got != LineInput::Got::line) break;
    place->digest.add(bytes);
    place->bytes += bytes.size();
    progress_.tick([&] {
      return "checks what was imported before: " + bench::grouped(place->bytes) + " of " +
             bench::grouped(position.bytes) + " bytes";
    });
  }
  if (place->bytes != position.bytes || place->digest.text() != position.digest) {
    return stop("the input is not the one that was imported before: its first " + bench::grouped(position.bytes) +
                " bytes, which end before line " + std::to_string(position.line) +
                ", are not those of the position key");
  }
  place->line = position.line;
  return true;
}

bool Importer::is_interrupted() {
  if (interrupt::received() == 0) return false;
  report_.was_interrupted = true;
  return true;
}

void Importer::read_all() {
  bool goes_on = true;
  while (goes_on) {
    if (is_interrupted()) return;
    std::string_view line;
    switch (input_.next(&line)) {
      case LineInput::Got::line:
        ++report_.lines;
        report_.bytes += line.size();
        goes_on = take_line(line);
        break;
      case LineInput::Got::idle:
        tick();
        goes_on = (part_.empty() && !chunk_->entries().empty()) ? flush() : sender_->look();
        break;
      case LineInput::Got::end: take_end(); return;
      case LineInput::Got::too_long:
        stop("line " + std::to_string(chunk_->next_line() + part_lines_) + " is longer than " +
             bench::grouped(LineInput::kLineBytesMax) + " bytes");
        return;
      case LineInput::Got::failed: stop_at_file(unreadable()); return;
    }
  }
}

bool Importer::take_line(std::string_view line) {
  const RecordParser::Taken taken = parser_->take(line);
  if (taken == RecordParser::Taken::part) {
    if (part_.size() + line.size() > LineInput::kLineBytesMax) {
      return stop("the record that begins in line " + std::to_string(chunk_->next_line()) + " is longer than " +
                  bench::grouped(LineInput::kLineBytesMax) + " bytes: a quote may be missing");
    }
    part_.append(line);
    ++part_lines_;
    return true;
  }
  ++part_lines_;
  if (!part_.empty()) line = part_.append(line);
  bool goes_on = true;
  switch (taken) {
    case RecordParser::Taken::record: goes_on = take_record(line); break;
    case RecordParser::Taken::bad:
      goes_on = line.ends_with('\n') ? refuse(line, parser_->problem()) : leave_unfinished(line, parser_->problem());
      break;
    case RecordParser::Taken::bad_header: return stop("line 1: " + parser_->problem());
    case RecordParser::Taken::part:
    case RecordParser::Taken::nothing: goes_on = add_lines(line); break;
  }
  part_.clear();
  part_lines_ = 0;
  return goes_on;
}

bool Importer::take_record(std::string_view text) {
  const Record& record = parser_->record();
  if (record.key == options_.position_key) return refuse(text, "the key is that of --position-key");
  const auto* bytes = std::get_if<std::string_view>(&record.value);
  if (options_.integers_only && bytes != nullptr) return refuse(text, no_integer(*bytes));
  if (must_flush_before(record) && !flush()) return false;
  chunk_->add_record(text, part_lines_, record);
  if (options_.existing != Existing::overwrite) keys_.insert(hash_of(record.key));
  const bool is_full = chunk_->entries().size() >= options_.batch_size || chunk_->record_bytes() >= kRecordBytesMax ||
                       chunk_->text().size() >= kTextBytesMax;
  return !is_full || flush();
}

// A large record is alone in its chunk. And a key is only once in a chunk that has guards for it.
bool Importer::must_flush_before(const Record& record) {
  if (chunk_->entries().empty()) return false;
  const auto* value = std::get_if<std::string_view>(&record.value);
  const std::size_t bytes = record.key.size() + (value != nullptr ? value->size() : 0);
  if (chunk_->record_bytes() + bytes > kRecordBytesMax) return true;
  return options_.existing != Existing::overwrite && keys_.contains(hash_of(record.key));
}

bool Importer::take_end() {
  const RecordParser::Taken taken = parser_->end();
  if (taken == RecordParser::Taken::bad_header) return stop("line 1: " + parser_->problem());
  if (taken == RecordParser::Taken::bad && !leave_unfinished(part_, parser_->problem())) return false;
  return flush();
}

// Takes lines without a record.
bool Importer::add_lines(std::string_view text) {
  chunk_->add_lines(text, part_lines_);
  return chunk_->text().size() < kTextBytesMax || flush();
}

// If the import stops at these lines, what is before them is still sent.
bool Importer::refuse(std::string_view text, const std::string& problem) {
  return leave_unfinished(text, problem) && add_lines(text);
}

// The same for the end of the input, where the last line may not be whole. It does not become a part of the position:
// when the input has grown, the next run reads it again.
bool Importer::leave_unfinished(std::string_view text, const std::string& problem) {
  if (set_aside(chunk_->next_line(), problem, text)) return true;
  flush();
  return false;
}

bool Importer::set_aside(std::uint64_t line, std::string_view problem, std::string_view text) {
  problem = utf8_prefix(problem, kProblemBytesMax);
  if (!bad_lines_.is_open()) {
    if (!report_.stopped_at || line < report_.stopped_at->line) report_.stopped_at = {line, std::string(problem)};
    return false;
  }
  const FileProblem file_problem = bad_lines_.add(line, problem, text);
  return file_problem.empty() || stop_at_file(file_problem);
}

bool Importer::flush() {
  tick();
  if (chunk_->text().empty()) return sender_->look();
  auto full = std::exchange(chunk_, std::make_unique<Chunk>(chunk_->end()));
  keys_.clear();
  // Lines without a record only move the position.
  return full->entries().empty() && options_.position_key.empty() ? sender_->look() : sender_->send(std::move(full));
}

void Importer::tick() {
  progress_.tick([this] {
    const SenderTotals& totals = sender_->totals();
    const std::uint64_t records = totals.written + totals.kept;
    std::string line = bench::grouped(records) + " records, " + rate_text(records, progress_.elapsed_us());
    const std::uint64_t before = chunk_->begin().bytes;
    if (input_.size() != 0) {
      const double share = static_cast<double>(before) / static_cast<double>(input_.size());
      line += ", " + bench::fixed(100 * share, 0) + "% of the input";
    }
    if (bad_lines_.count() != 0) line += ", " + bench::grouped(bad_lines_.count()) + " bad lines";
    return line;
  });
}

}  // namespace kilokv::client
