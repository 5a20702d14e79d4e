// Reads an input, makes chunks of its records, and sends them (chunk_sender.hpp). A bad line stops the import, or is
// set aside. With a position key, an import that was ended at any moment goes on where it was: see position.hpp.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "client/cli/bulk/bad_lines.hpp"
#include "client/cli/bulk/chunk.hpp"
#include "client/cli/bulk/chunk_sender.hpp"
#include "client/cli/bulk/line_input.hpp"
#include "client/cli/bulk/progress.hpp"
#include "client/cli/bulk/record_parser.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

struct ImportOptions {
  BulkFormat format = BulkFormat::json_lines;
  CsvColumns columns;
  bool integers_only = false;  // a value that is no integer makes its line a bad one
  Existing existing = Existing::overwrite;
  std::string bad_lines_file;       // empty: a bad line stops the import
  std::string position_key;         // empty: none
  std::uint32_t batch_size = 1000;  // most records of a chunk
  std::uint32_t in_flight = 8;      // most chunks on their way
  bool shows_progress = false;
  CallOptions call = {};  // of each request
};

struct BadLine {
  std::uint64_t line = 0;
  std::string problem;
};

struct ImportReport {
  SenderTotals totals;
  std::uint64_t lines = 0, bytes = 0;         // read in this run, after the position
  std::uint64_t bad_lines = 0;                // set aside, by all runs of this import
  std::optional<std::uint64_t> continued_at;  // the first line of this run, if earlier ones had a position
  std::optional<BadLine> stopped_at;          // a bad line that has stopped the import
  std::string input_problem;                  // a file cannot be read or written, or is not the right one
  bool is_file_problem = false;               // input_problem: a file cannot be read or written
  std::string hint;                           // what to try if the first line could not be read; empty: nothing
  Error error;                                // of the server, or of the way to it
  bool has_begun = false;                     // false: nothing was sent, because of a problem or an error before
  bool was_interrupted = false;
  std::int64_t elapsed_us = 0;
};

class Importer {
 public:
  // Requires: `client` and the descriptor outlive it.
  Importer(Client* client, ImportOptions options, int descriptor);
  ImportReport run();

 private:
  bool begin();
  bool go_on(Session* session);
  bool fail(Error error);
  bool skip_to(const Position& position, InputPlace* place);
  bool skip_header(const Position& position, InputPlace* place);
  bool check_bad_lines();
  bool is_interrupted();
  void make_sender(std::unique_ptr<Session> session);
  void read_all();
  bool take_line(std::string_view line);
  bool take_record(std::string_view text);
  bool take_end();
  bool add_lines(std::string_view text);
  bool refuse(std::string_view text, const std::string& problem);
  bool leave_unfinished(std::string_view text, const std::string& problem);
  bool set_aside(std::uint64_t line, std::string_view problem, std::string_view text);
  bool must_flush_before(const Record& record);
  bool flush();
  void tick();
  bool stop(std::string problem);
  bool stop_at_file(FileProblem problem);

  Client* const client_;
  const ImportOptions options_;
  LineInput input_;
  std::unique_ptr<RecordParser> parser_;
  PositionOptions position_options_;
  BadLines bad_lines_;
  std::unique_ptr<ChunkSender> sender_;
  std::unique_ptr<Chunk> chunk_;            // that is being filled
  std::unordered_set<std::uint64_t> keys_;  // hashes of those in chunk_, unless existing keys are overwritten
  std::string part_;                        // the lines of a record that goes on
  std::uint64_t part_lines_ = 0;
  ProgressLine progress_;
  ImportReport report_;
};

}  // namespace kilokv::client
