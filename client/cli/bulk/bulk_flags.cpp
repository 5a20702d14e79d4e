// Role: see bulk_flags.hpp.
#include "client/cli/bulk/bulk_flags.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "client/cli/bulk/bulk_commands.hpp"
#include "client/cli/bulk/pair_text.hpp"
#include "client/command_line/arguments.hpp"

namespace kilokv::client {
namespace {

// The limits that count are those of the server.
constexpr std::uint64_t kBatchSizeMax = 1'000'000;
constexpr std::uint64_t kInFlightMax = 256;

CLI::App* add_command(CLI::App* app, const char* name, const char* description, const char* examples) {
  CLI::App* command = add_subcommand(app, name, description);
  command->footer(std::string("Examples:\n") + examples);
  return command;
}

void add_format(CLI::App* command, std::optional<BulkFormat>* format) {
  const std::map<std::string, BulkFormat> formats = {{"jsonl", BulkFormat::json_lines}, {"csv", BulkFormat::csv}};
  command
      ->add_option("--format", *format,
                   "jsonl: a JSON object in each line; csv: a row for each pair, after a header; default: csv if the "
                   "name of the file ends with .csv, else jsonl")
      ->transform(CLI::Transformer(formats))
      ->transform(one_of({"jsonl", "csv"}))
      ->option_text("jsonl|csv");
}

// One character, or the word tab. The result is the character.
CLI::Validator csv_separator() {
  const auto read = [](std::string& text) {
    const std::string character = text == "tab" ? "\t" : text;
    if (character.size() != 1 || !is_csv_separator(character.front())) {
      return "\"" + text +
             "\" separates no cells: give one character, such as ; or |, or the word tab; letters, digits, blanks and "
             "\" + - / : = cannot separate";
    }
    text = character;
    return std::string();
  };
  return {read, ""};
}

void add_separator(CLI::App* command, char* separator) {
  command
      ->add_option("--separator", *separator,
                   "character between the cells of a CSV file, such as ; or the word tab; default: a comma")
      ->transform(csv_separator())
      ->option_text("CHAR");
}

void add_progress(CLI::App* command, ProgressFlags* flags, const char* quiet) {
  CLI::Option* always = command->add_flag(
      "--progress", flags->always,
      "print a line about the progress on standard error in each second; default: only if it is a terminal");
  command->add_flag("--quiet", flags->never, quiet)->excludes(always);
}

void add_export(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  const auto a = std::make_shared<ExportArguments>();
  CLI::App* command = add_command(app, "export", "Write pairs to a file, in key order and all as of one moment",
                                  "  kilokv export stock.csv --prefix stock:\n"
                                  "  kilokv export --from a --to m | gzip >pairs.jsonl.gz");
  command
      ->add_option("file", a->file,
                   "file that is replaced when all is written, with access for its owner only; -: standard output")
      ->capture_default_str();
  add_format(command, &a->format);
  add_separator(command, &a->separator);
  CLI::Option* prefix =
      command->add_option("--prefix", a->prefix, "export only keys that begin with this text; default: all keys")
          ->option_text("KEY");
  command->add_option("--from", a->from, "first key that is exported; default: the first key of all")
      ->option_text("KEY")
      ->excludes(prefix);
  command->add_option("--to", a->to, "first key that is not exported any more; default: all keys up to the last one")
      ->option_text("KEY")
      ->excludes(prefix);
  add_progress(command, &a->progress, "print no progress, and no line at the end, on standard error");
  command->callback([=] { *action = [=] { return run_export(*common, *a); }; });
}

void add_columns(CLI::App* command, CsvColumns* columns) {
  command->add_option("--key-column", columns->key, "column of a CSV file that has the keys; default: key")
      ->transform(some_text())
      ->option_text("NAME");
  command->add_option("--value-column", columns->value, "column of a CSV file that has the values; default: value")
      ->transform(some_text())
      ->option_text("NAME");
  command->add_flag("--bytes", columns->values_as_bytes,
                    "store each value of a CSV file as bytes, even if it looks like an integer");
}

void add_sending(CLI::App* command, ImportOptions* options) {
  command
      ->add_option("--batch-size", options->batch_size,
                   "most records in a transaction, which is one request; a server takes 1023 unless its limits differ")
      ->transform(whole_number(1, kBatchSizeMax))
      ->option_text("COUNT")
      ->capture_default_str();
  command->add_option("--in-flight", options->in_flight, "most requests that wait for their answers at the same time")
      ->transform(whole_number(1, kInFlightMax))
      ->option_text("COUNT")
      ->capture_default_str();
}

void add_import(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  const auto a = std::make_shared<ImportArguments>();
  CLI::App* command = add_command(app, "import", "Read pairs from a file, and write them into the database",
                                  "  kilokv import stock.csv --position-key import/stock\n"
                                  "  kilokv import --format csv --existing keep --bad-lines bad.jsonl <pairs.csv");
  command->add_option("file", a->file, "file of pairs; -: standard input")->capture_default_str();
  add_format(command, &a->format);
  add_columns(command, &a->options.columns);
  add_separator(command, &a->options.columns.separator);
  command->add_flag("--integers", a->options.integers_only,
                    "refuse a value that is not written as an integer, such as 007 or 1.5, which makes it a bad line; "
                    "default: it is stored as bytes");
  const std::map<std::string, Existing> modes = {
      {"overwrite", Existing::overwrite}, {"keep", Existing::keep}, {"refuse", Existing::refuse}};
  command
      ->add_option("--existing", a->options.existing,
                   "what to do with a record whose key exists: overwrite the value; keep the value, and skip the "
                   "record; refuse the record, which makes it a bad line; default: overwrite")
      ->transform(CLI::Transformer(modes))
      ->transform(one_of({"overwrite", "keep", "refuse"}))
      ->option_text("overwrite|keep|refuse");
  command
      ->add_option("--bad-lines", a->options.bad_lines_file,
                   "set bad lines aside into this new file, and go on; default: stop at the first bad line")
      ->transform(some_text())
      ->option_text("FILE");
  command
      ->add_option("--position-key", a->options.position_key,
                   "key for the position in the file, which every transaction of the import writes, so that an import "
                   "that was ended anywhere goes on there when it is run again; default: none")
      ->transform(some_text())
      ->option_text("KEY");
  add_sending(command, &a->options);
  add_progress(command, &a->progress, "print no progress on standard error");
  command->callback([=] { *action = [=] { return run_import(*common, *a); }; });
}

}  // namespace

void add_bulk(CLI::App* app, const CommonOptions* common, std::function<ExitCode()>* action) {
  add_export(app, common, action);
  add_import(app, common, action);
}

}  // namespace kilokv::client
