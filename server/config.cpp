// 380 lines: the table of all settings is most of it, and belongs in one place.
#include "server/config.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "server/config_file.hpp"
#include "server/config_value.hpp"
#include "server/core/environment.hpp"
#include "server/version.hpp"

namespace kilokv::server {
namespace {

enum class Unit { text, count, size, duration, share };

// The limits are 32 bits wide in the columns, the rest 64.
using Target = std::variant<std::string*, std::uint32_t*, std::uint64_t*, DurationUs*, double*>;

struct Setting {
  const char* group;
  const char* name;  // without the dashes
  Unit unit;
  Target target;
  std::string help;
};

// What auto may choose under --order any alone.
std::vector<std::string> strategies_in_any_order() {
  std::vector<std::string> names;
  for (const engine::StrategyInfo& info : engine::strategy_infos()) {
    if (info.auto_order == "any") names.push_back(info.name);
  }
  return names;
}

// Settings of strategies stay texts: the engine checks them, and fills in what is not there.
void add_strategies(engine::EngineOptions* o, std::vector<Setting>* s) {
  for (const engine::SettingInfo& info : engine::strategy_settings()) {
    const engine::StrategySetting& setting = info.setting;
    if (setting.for_measuring) continue;
    const bool is_text = setting.kind == engine::SettingKind::form || setting.kind == engine::SettingKind::on_off;
    std::string* const text = &o->settings.try_emplace(setting.name, setting.default_text()).first->second;
    s->push_back({"Strategies", setting.name, is_text ? Unit::text : Unit::count, text,
                  std::string(setting.help) + " Takes " + setting.takes() +
                      ". Strategies: " + engine::listed(info.strategies, ", ") + "."});
  }
}

void add_program(ServerOptions* o, std::vector<Setting>* s) {
  constexpr auto kGroup = "Server";
  s->insert(s->end(),
            {{kGroup, "data-dir", Unit::text, &o->storage.data_dir, "directory of the database; created when missing"},
             {kGroup, "listen", Unit::text, &o->listen, "HOST:PORT of the gRPC service; port 0 picks a free one"},
             {kGroup, "port-file", Unit::text, &o->port_file, "write the port to this file when ready"},
             {kGroup, "strategy", Unit::text, &o->engine.strategy,
              "how the engine executes a batch: " + engine::listed(engine::Engine::strategies())},
             {kGroup, "order", Unit::text, &o->engine.order,
              "order that auto must keep: fixed is by precedence, then by arrival; any is any serial order, and " +
                  engine::listed(strategies_in_any_order(), " and ") + " may run a batch, too"},
             {kGroup, "device", Unit::text, &o->engine.device,
              "where the engine runs: auto, cpu, cuda or emulated (for tests: a device in host memory, slow)"},
             {kGroup, "threads", Unit::count, &o->engine.threads,
              "threads of the engine's parallel strategy on the CPU; 0: one for each core"},
             {kGroup, "validation", Unit::text, &o->engine.validation,
              "of large read sets: auto, alone (one thread), cooperative (from both ends) or by-guard"},
             {kGroup, "validation-lanes", Unit::text, &o->engine.validation_lanes,
              "how a device's lanes share a block of a read set: coalesced or strided"},
             {kGroup, "shadow-rate", Unit::share, &o->database.shadow_rate,
              "share of the batches that the referee runs again; the server stops where the two differ"},
             {kGroup, "shadow-records-max", Unit::count, &o->database.shadow_records_max,
              "keys, and records in ranges, of a batch that the referee runs again; one that names more is left out"},
             {kGroup, "shadow-bytes-max", Unit::size, &o->database.shadow_bytes_max, "the same in bytes"},
             {kGroup, "expected-records", Unit::count, &o->engine.expected_records,
              "records to make room for at the start, so that the table need not grow under load"},
             {kGroup, "table-records-max", Unit::count, &o->engine.table_records_max,
              "records in memory, deleted ones included; new keys are refused beyond it"},
             {kGroup, "drain-timeout", Unit::duration, &o->drain_timeout_us,
              "after SIGTERM or SIGINT, how long to finish what was accepted; a second signal ends at once"},
             {kGroup, "log-level", Unit::text, &o->log_level, "trace, debug, info, warning, error, critical or off"},
             {kGroup, "log-file", Unit::text, &o->log_file, "append log lines to this file; empty: standard error"}});
}

void add_batching(DatabaseOptions* o, std::vector<Setting>* s) {
  constexpr auto kBatches = "Batches";
  constexpr auto kAdmission = "Admission and waiting";
  s->insert(
      s->end(),
      {{kBatches, "batch-max-transactions", Unit::count, &o->batch_max_transactions, "transactions in one batch"},
       {kBatches, "batch-max-delay", Unit::duration, &o->batch_max_delay_us,
        "how long a batch may wait for more, while an earlier one is in flight; an idle server does not wait"},
       {kBatches, "batch-max-bytes", Unit::size, &o->batch_max_bytes,
        "longest log record that a batch may need; a single transaction may exceed it"},
       {kBatches, "batch-max-reads", Unit::count, &o->batch_max_reads,
        "keys that the guards, reads and ranges of a batch may look at; a single transaction may exceed it"},
       {kBatches, "batch-in-flight-max", Unit::count, &o->batch_in_flight_max, "batches executed, not yet durable"},
       {kAdmission, "queue-transactions-max", Unit::count, &o->queue_transactions_max,
        "transactions accepted, not yet in a batch; beyond it RESOURCE_EXHAUSTED"},
       {kAdmission, "queue-bytes-max", Unit::size, &o->queue_bytes_max, "the same in bytes"},
       {kAdmission, "parked-max", Unit::count, &o->parked_max, "transactions that wait for a guard"},
       {kAdmission, "parked-bytes-max", Unit::size, &o->parked_bytes_max, "the same in bytes"},
       {kAdmission, "commands-in-flight-max", Unit::count, &o->commands_in_flight_max,
        "sessions opened and closed, cancels and lists of what waits, on their way"}});
}

void add_sessions_and_reads(DatabaseOptions* o, std::vector<Setting>* s) {
  constexpr auto kSessions = "Sessions";
  constexpr auto kUploads = "Uploaded read sets";
  constexpr auto kReads = "Snapshots and scans";
  s->insert(s->end(),
            {{kSessions, "sessions-max", Unit::count, &o->sessions_max, "sessions open at once"},
             {kSessions, "session-lease-min", Unit::duration, &o->session_lease_us_min,
              "shortest lease a client may ask for"},
             {kSessions, "session-lease-default", Unit::duration, &o->session_lease_us_default,
              "lease when the client asks for none"},
             {kSessions, "session-lease-max", Unit::duration, &o->session_lease_us_max, "longest lease"},
             {kSessions, "session-requests-max", Unit::count, &o->session_requests_max,
              "requests of one session, in flight or with stored results"},
             {kSessions, "session-bytes-max", Unit::size, &o->session_bytes_max,
              "stored results of one session, and the most that requests in flight may add"},
             {kSessions, "session-bytes-total-max", Unit::size, &o->session_bytes_total_max,
              "the same of all sessions; new requests in sessions are refused beyond it"},
             {kSessions, "result-bytes-max", Unit::size, &o->result_bytes_max,
              "stored result of one transaction; beyond it version and outcome only"},
             {kUploads, "read-set-keys-max", Unit::count, &o->read_set_keys_max, "keys of one read set"},
             {kUploads, "uploads-bytes-max", Unit::size, &o->uploads_bytes_max,
              "read sets in memory that are not committed yet, of all sessions"},
             {kUploads, "session-uploads-bytes-max", Unit::size, &o->session_uploads_bytes_max,
              "the same of one session; a read set that needs more is refused"},
             {kUploads, "upload-idle-max", Unit::duration, &o->upload_idle_us_max,
              "a read set to which nothing is added for so long is dropped; the client uploads it again"},
             {kReads, "snapshot-bytes-max", Unit::size, &o->snapshot_bytes_max, "before-images kept for scans"},
             {kReads, "snapshot-age-max", Unit::duration, &o->snapshot_age_us_max, "age of the oldest boundary kept"},
             {kReads, "scan-pairs-max", Unit::count, &o->scan_pairs_max, "pairs in one page"},
             {kReads, "scan-bytes-max", Unit::size, &o->scan_bytes_max, "bytes in one page"},
             {kReads, "scans-in-flight-max", Unit::count, &o->scans_in_flight_max, "pages read at once"}});
}

void add_storage(ServerOptions* options, std::vector<Setting>* s) {
  constexpr auto kCheckpoints = "Checkpoints";
  constexpr auto kStorage = "Storage";
  DatabaseOptions* o = &options->database;
  StorageOptions* storage = &options->storage;
  s->insert(s->end(),
            {{kCheckpoints, "checkpoint-log-bytes", Unit::size, &o->checkpoint_log_bytes,
              "log written since the last checkpoint that starts the next"},
             {kCheckpoints, "checkpoint-interval", Unit::duration, &o->checkpoint_interval_us,
              "time since the last checkpoint that starts the next"},
             {kCheckpoints, "tombstone-retention", Unit::duration, &o->tombstone_retention_us,
              "how long the version of a deleted key is kept"},
             {kStorage, "history-retention", Unit::duration, &storage->history_retention_us,
              "how long log records behind the checkpoint are kept"},
             {kStorage, "history-bytes-max", Unit::size, &storage->history_bytes_max, "at most so much of them"},
             {kStorage, "disk-reserve", Unit::size, &storage->disk_reserve_bytes,
              "free space of the file system that new work may not use"},
             {kStorage, "log-buffer", Unit::size, &storage->log_buffer_bytes, "one memory buffer of the log"},
             {kStorage, "state-buffer", Unit::size, &storage->state_buffer_bytes, "one memory buffer of the state"},
             {kStorage, "write-ahead-log-max", Unit::size, &storage->write_ahead_log_bytes_max,
              "write-ahead log that is read again at start-up"}});
}

void add_limits(ServerOptions* options, std::vector<Setting>* s) {
  constexpr auto kMessages = "Messages and streams";
  constexpr auto kLimits = "Limits of a transaction";
  ServiceOptions* o = &options->service;
  engine::TransactionLimits* limits = &o->limits;
  s->insert(s->end(),
            {{kMessages, "message-bytes-max", Unit::size, &o->message_bytes_max,
              "one message, request or answer; clients of gRPC take 4MiB unless told otherwise"},
             {kMessages, "grpc-memory-max", Unit::size, &o->grpc_memory_max,
              "what gRPC may take for calls and messages on their way; beyond it calls fail"},
             {kMessages, "request-transactions-max", Unit::count, &limits->request_transactions_max,
              "transactions in one request"},
             {kMessages, "stream-requests-max", Unit::count, &o->stream_requests_max,
              "requests in flight on one stream; reading pauses at it"},
             {kMessages, "stream-bytes-max", Unit::size, &o->stream_bytes_max,
              "bytes in flight on one stream; reading pauses at it"},
             {kMessages, "stream-answer-bytes-max", Unit::size, &o->stream_answer_bytes_max,
              "answers that a client has not taken; beyond it its stream is cut"},
             {kMessages, "answers-bytes-max", Unit::size, &o->answers_bytes_max,
              "the same of all clients; the stream whose answer would exceed it is cut"},
             {kLimits, "key-bytes-max", Unit::size, &limits->key_bytes_max, "one key"},
             {kLimits, "value-bytes-max", Unit::size, &limits->value_bytes_max, "one value"},
             {kLimits, "guards-max", Unit::count, &limits->guards_max, "guards that are not uploaded"},
             {kLimits, "operations-max", Unit::count, &limits->operations_max, "operations, both lists together"},
             {kLimits, "range-keys-max", Unit::count, &limits->range_keys_max, "keys of one range operation"},
             {kLimits, "transaction-keys-max", Unit::count, &limits->transaction_keys_max,
              "keys of all range operations of a transaction together"},
             {kLimits, "wait-timeout-max", Unit::duration, &options->database.wait_timeout_us_max, "wait_timeout"}});
}

std::vector<Setting> settings_of(ServerOptions* options) {
  std::vector<Setting> settings;
  add_program(options, &settings);
  add_strategies(&options->engine, &settings);
  add_batching(&options->database, &settings);
  add_sessions_and_reads(&options->database, &settings);
  add_storage(options, &settings);
  add_limits(options, &settings);
  return settings;
}

const char* placeholder(Unit unit) {
  switch (unit) {
    case Unit::text: return "TEXT";
    case Unit::count: return "COUNT";
    case Unit::size: return "SIZE";
    case Unit::duration: return "DURATION";
    case Unit::share: return "SHARE";
  }
  return "";
}

std::string description(const Setting& setting) {
  const bool is_narrow = std::holds_alternative<std::uint32_t*>(setting.target);
  const std::uint64_t most = is_narrow ? std::numeric_limits<std::uint32_t>::max() : ~std::uint64_t{0};
  switch (setting.unit) {
    case Unit::text: return "a text";
    case Unit::count: return "a whole number up to " + std::to_string(most);
    case Unit::size: return "a size such as 4096, 64KiB, 1MiB or 2GiB";
    case Unit::duration: return "a duration such as 500us, 1ms, 3s, 2m or 24h";
    case Unit::share: return "a share from 0 to 1, such as 0.05";
  }
  return "";
}

std::string format(const Setting& setting) {
  if (const auto* text = std::get_if<std::string*>(&setting.target)) return **text;
  if (const auto* duration = std::get_if<DurationUs*>(&setting.target)) return format_duration(**duration);
  if (const auto* share = std::get_if<double*>(&setting.target)) return format_share(**share);
  const auto* narrow = std::get_if<std::uint32_t*>(&setting.target);
  const std::uint64_t value = narrow != nullptr ? **narrow : *std::get<std::uint64_t*>(setting.target);
  return setting.unit == Unit::size ? format_size(value) : std::to_string(value);
}

// Whether `text` is of the setting's kind; then its target holds it.
bool assign(const Setting& setting, const std::string& text) {
  if (auto* target = std::get_if<std::string*>(&setting.target)) {
    **target = text;
    return true;
  }
  if (auto* target = std::get_if<DurationUs*>(&setting.target)) {
    const auto value = parse_duration(text);
    if (value) **target = *value;
    return value.has_value();
  }
  if (auto* target = std::get_if<double*>(&setting.target)) {
    const auto value = parse_share(text);
    if (value) **target = *value;
    return value.has_value();
  }
  const auto value = setting.unit == Unit::size ? parse_size(text) : parse_count(text);
  if (!value) return false;
  if (auto* target = std::get_if<std::uint32_t*>(&setting.target)) {
    if (*value > std::numeric_limits<std::uint32_t>::max()) return false;
    **target = static_cast<std::uint32_t>(*value);
  } else {
    *std::get<std::uint64_t*>(setting.target) = *value;
  }
  return true;
}

Status invalid(std::string message) { return Status(StatusCode::invalid_argument, std::move(message)); }

// A value and where it comes from, such as kilokvd.toml:3:1: batch-max-delay.
struct Given {
  std::string text;
  std::string source;
};
using GivenByName = std::map<std::string, Given>;

std::string variable_of(const std::string& name) {
  std::string variable = "KILOKV_";
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

void read_environment(const std::vector<Setting>& settings, const ReadEnvironment& environment, GivenByName* given) {
  for (const Setting& setting : settings) {
    const std::string variable = variable_of(setting.name);
    if (const char* text = environment(variable.c_str())) (*given)[setting.name] = {text, variable};
  }
}

Status read_file(const std::string& path, const std::vector<Setting>& settings, GivenByName* given) {
  Result<std::vector<FileValue>> values = read_config_file(path);
  if (!values.ok()) return values.status();
  for (FileValue& value : *values) {
    const bool known =
        std::any_of(settings.begin(), settings.end(), [&](const Setting& s) { return value.name == s.name; });
    if (!known) return invalid(value.source + ": unknown key; kilokvd --help lists the flags, which are the keys");
    (*given)[value.name] = {std::move(value.text), std::move(value.source)};
  }
  return {};
}

Status assign_all(const std::vector<Setting>& settings, const GivenByName& given) {
  for (const Setting& setting : settings) {
    const auto found = given.find(setting.name);
    if (found == given.end() || assign(setting, found->second.text)) continue;
    return invalid(found->second.source + " is \"" + found->second.text + "\": it must be " + description(setting));
  }
  return {};
}

// The message with the source of each setting that it names by its flag. What it names twice keeps the flag, too.
std::string with_sources(const std::string& message, GivenByName given) {
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz-";
  std::string text;
  std::size_t told = 0;
  for (std::size_t dashes = 0; (dashes = message.find("--", dashes)) != std::string::npos;) {
    if (std::count(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(dashes), '"') % 2 != 0) {
      dashes += 2;  // in a value that is quoted
      continue;
    }
    const std::size_t end = std::min(message.find_first_not_of(kNameCharacters, dashes), message.size());
    const auto named = given.extract(message.substr(dashes + 2, end - dashes - 2));
    text += message.substr(told, dashes - told);
    text += named.empty() ? message.substr(dashes, end - dashes) : named.mapped().source;
    told = dashes = end;
  }
  return text + message.substr(told);
}

// The flags as CLI11 sees them: texts, so that all sources are parsed in one way.
struct Flags {
  CLI::App app{"kilokvd: transactional key-value database service", "kilokvd"};
  std::map<std::string, std::string> texts;  // by name; nodes stay where CLI11 writes to
  std::string config_file;
  bool check_config = false;

  explicit Flags(const std::vector<Setting>& settings) {
    app.set_help_flag("-h,--help", "print this and exit");
    app.set_version_flag("--version", std::string("kilokvd ") + kVersion + " (commit " + kCommit + ")",
                         "print version and commit and exit");
    app.add_option("--config", config_file, "read settings from this TOML file")->type_name("FILE");
    app.add_flag("--check-config", check_config, "check all settings, say whether they are good, and exit");
    for (const Setting& setting : settings) {
      const std::string text = format(setting);
      app.add_option("--" + std::string(setting.name), texts[setting.name], setting.help)
          ->group(setting.group)
          ->option_text(std::string(placeholder(setting.unit)) + (text.empty() ? "" : " [" + text + "]"));
    }
    app.footer(
        "Brackets hold defaults. SIZE: bytes, or with KiB, MiB, GiB, TiB. DURATION: with us, ms, s, m or h.\n"
        "SHARE: from 0 to 1.\n"
        "Every --some-name is also the environment variable KILOKV_SOME_NAME and the key some-name of the\n"
        "--config file; a flag wins over the environment, the environment over the file.");
    app.get_formatter()->column_width(44);
  }
};

// What is wrong with the command line. CLI11's own words speak of its types and counts.
std::string usage_problem(const Flags& flags, int argc, const char* const* argv) {
  const std::vector<std::string> left = flags.app.remaining();
  const auto is_flag = [](const std::string& word) { return word.size() > 1 && word.front() == '-'; };
  if (const auto found = std::find_if(left.begin(), left.end(), is_flag); found != left.end()) {
    return "unknown flag " + *found;
  }
  if (!left.empty()) return "unexpected \"" + left.front() + "\": every setting is a flag";
  std::map<std::string, int> times;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    const CLI::Option* option = is_flag(word) ? flags.app.get_option_no_throw(name) : nullptr;
    if (option == nullptr) continue;
    const bool has_value = name.size() < word.size();
    const bool takes_value = option->get_items_expected_max() > 0;
    if (has_value && !takes_value) return name + " takes no value";
    if (++times[name] > 1) return name + " is given twice";
    if (takes_value && (has_value ? name.size() + 1 == word.size() : ++i == argc)) return name + " needs a value";
  }
  return "it cannot be read";
}

Status check_choice(const char* setting, const std::string& actual, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), actual) != allowed.end()) return {};
  std::string list;
  for (const std::string& choice : allowed) list += (list.empty() ? "" : ", ") + choice;
  return invalid(std::string(setting) + " is \"" + actual + "\": it must be one of " + list);
}

// `set_by`: the flag that sets the limit, where one does.
Status check_most(const char* setting, std::uint64_t actual, std::uint64_t most, const std::string& set_by = {}) {
  if (actual <= most) return {};
  return Status::invalid({setting, "0 to " + std::to_string(most) + set_by, std::to_string(actual), setting});
}

Status check_longest(const char* setting, DurationUs actual, DurationUs longest) {
  if (actual <= longest) return {};
  return Status::invalid({setting, "0 to " + format_duration(longest), format_duration(actual), setting});
}

Status check_listen(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon != std::string::npos && colon != 0) {
    const auto port = parse_count(std::string_view(listen).substr(colon + 1));
    if (port && *port <= 65535) return {};
  }
  return invalid("--listen is \"" + listen + "\": it must be HOST:PORT with a port from 0 to 65535");
}

}  // namespace

Status ServerOptions::validate() const {
  Status status = check_listen(listen);
  if (status.ok()) status = engine.validate();
  if (status.ok()) {
    status = check_choice("--log-level", log_level, {"trace", "debug", "info", "warning", "error", "critical", "off"});
  }
  if (status.ok()) status = check_longest("--drain-timeout", drain_timeout_us, kDurationUsMax);
  // A slot of the table has a number of 32 bits.
  if (status.ok()) status = check_most("--table-records-max", engine.table_records_max, std::uint64_t{1} << 31);
  if (status.ok()) {
    status =
        check_most("--expected-records", engine.expected_records, engine.table_records_max, " (--table-records-max)");
  }
  if (status.ok()) status = storage.validate();
  if (status.ok()) status = service.validate();
  if (status.ok()) status = database.validate();
  return status;
}

Result<CommandLine> parse_command_line(int argc, const char* const* argv, const ReadEnvironment& environment) {
  CommandLine line;
  const std::vector<Setting> settings = settings_of(&line.options);
  Flags flags(settings);
  try {
    flags.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return CommandLine{.action = CommandLine::Action::print, .text = flags.app.help(), .options = {}};
  } catch (const CLI::CallForVersion& version) {
    return CommandLine{.action = CommandLine::Action::print, .text = version.what() + std::string("\n"), .options = {}};
  } catch (const CLI::ParseError&) {
    return invalid(usage_problem(flags, argc, argv) + "; kilokvd --help lists the flags");
  }

  if (flags.config_file.empty()) {
    if (const char* file = environment("KILOKV_CONFIG")) flags.config_file = file;
  }
  GivenByName given;
  if (!flags.config_file.empty()) {
    Status status = read_file(flags.config_file, settings, &given);
    if (!status.ok()) return status;
  }
  read_environment(settings, environment, &given);
  for (const auto& [name, text] : flags.texts) {
    if (flags.app.count("--" + name) > 0) given[name] = {text, "--" + name};
  }
  Status status = assign_all(settings, given);
  if (!status.ok()) return status;
  line.options.service.limits.wait_timeout_us_max = line.options.database.wait_timeout_us_max;
  line.options.database.guards_max = line.options.service.limits.guards_max;
  status = line.options.validate();
  if (!status.ok()) return Status(status.code(), with_sources(status.message(), std::move(given)));
  if (flags.check_config) line.action = CommandLine::Action::check_config;
  return line;
}

std::string help_text() {
  ServerOptions defaults;
  return Flags(settings_of(&defaults)).app.help();
}

}  // namespace kilokv::server
