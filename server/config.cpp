// This file is long because it holds the table of all settings, which belongs in one place.
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
#include "server/core/one_line.hpp"
#include "server/core/unit_text.hpp"
#include "server/version.hpp"

namespace kilokv::server {
namespace {

enum class Unit { text, count, size, duration, share, on_off };

// Where the value of a setting goes. Limits of a transaction have 32 bits, because columns do. Other numbers have 64.
using Target = std::variant<std::string*, std::uint32_t*, std::uint64_t*, DurationUs*, double*, bool*>;

struct Setting {
  const char* group;
  const char* name;  // without the dashes
  Unit unit;
  Target target;
  std::string help;
};

// The strategies that auto may choose only with --order any.
std::vector<std::string> strategies_in_any_order() {
  std::vector<std::string> names;
  for (const engine::StrategyInfo& info : engine::strategy_infos()) {
    if (info.auto_order == "any") names.push_back(info.name);
  }
  return names;
}

// Settings of strategies stay texts. The engine checks them, and uses the default of a setting that is not given.
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
  s->insert(
      s->end(),
      {{kGroup, "data-dir", Unit::text, &o->storage.data_dir,
        "directory of the database; if there is none, --create says whether it is made"},
       {kGroup, "create", Unit::text, &o->storage.create,
        "what a start does if --data-dir has no database: auto makes a new, empty one and warns; never refuses to "
        "start"},
       {kGroup, "listen", Unit::text, &o->listen,
        "address of the gRPC service, as HOST:PORT; port 0 picks a free port"},
       {kGroup, "http-listen", Unit::text, &o->http.http_listen,
        "address of the pages over HTTP (/console/, /metrics, /status, /livez and /readyz), as HOST:PORT; port 0 picks "
        "a free port; off: none"},
       {kGroup, "console", Unit::on_off, &o->http.console,
        "whether the pages have the console, /console/, with which people operate the server in a browser"},
       {kGroup, "console-kill", Unit::on_off, &o->http.console_kill,
        "whether the console has a button that kills the server, for demonstrations"},
       {kGroup, "port-file", Unit::text, &o->port_file,
        "file to which the server writes its port when it is ready; empty: none"},
       {kGroup, "strategy", Unit::text, &o->engine.strategy,
        "how the engine executes a batch: " + engine::listed(engine::Engine::strategies())},
       {kGroup, "order", Unit::text, &o->engine.order,
        "order that auto must keep: fixed is by precedence, then by arrival; any is any serial order, and then " +
            engine::listed(strategies_in_any_order(), " and ") + " may also run a batch"},
       {kGroup, "device", Unit::text, &o->engine.device,
        "where the engine runs: auto, cpu, cuda or emulated (for tests: a device in host memory, slow)"},
       {kGroup, "threads", Unit::count, &o->engine.threads,
        "threads of the engine on the CPU, for every strategy but serial; with 1, pipelined and partitioned run as "
        "serial; 0: one for each core"},
       {kGroup, "validation", Unit::text, &o->engine.validation,
        "how large read sets are checked: auto, alone (by one thread), cooperative (by two sides, from both ends) or "
        "by-guard"},
       {kGroup, "validation-lanes", Unit::text, &o->engine.validation_lanes,
        "how the lanes of a device share a block of a read set: coalesced or strided"},
       {kGroup, "shadow-rate", Unit::share, &o->database.shadow_rate,
        "share of the batches that the referee replays; the server ends when the results differ; 0: none"},
       {kGroup, "shadow-records-max", Unit::count, &o->database.shadow_records_max,
        "keys, and records in ranges, of a batch that the referee replays; a batch that names more is not replayed"},
       {kGroup, "shadow-bytes-max", Unit::size, &o->database.shadow_bytes_max,
        "bytes of the records of a batch that the referee replays; a batch that needs more is not replayed"},
       {kGroup, "expected-records", Unit::count, &o->engine.expected_records,
        "records for which the table has room from the start, so that it need not grow under load"},
       {kGroup, "table-records-max", Unit::count, &o->engine.table_records_max,
        "records in memory, deleted records included; when it is reached, new keys are refused"},
       {kGroup, "memory-limit", Unit::size, &o->database.memory_limit,
        "most memory of the server; when the part of it that is for data is full, new data is refused, and reads and "
        "deletes go on; 0: 70% of the memory of the machine, or of its cgroup if that has less"},
       {kGroup, "read-only", Unit::on_off, &o->database.read_only,
        "whether the server refuses everything that changes data, sessions, users, roles or tokens; it then makes no "
        "database, unless --create is given, too"},
       {kGroup, "drain-timeout", Unit::duration, &o->drain_timeout_us,
        "time to finish accepted work after SIGTERM or SIGINT; a second signal ends the server at once"},
       {kGroup, "log-level", Unit::text, &o->log_level,
        "least severe lines that are logged: trace, debug, info, warning, error, critical or off; lines about logins "
        "and changes of rights are always logged"},
       {kGroup, "log-file", Unit::text, &o->log_file, "file to which log lines are appended; empty: standard error"},
       {kGroup, "log-format", Unit::text, &o->log_format,
        "form of the log lines: text, or json with one object in each line"},
       {kGroup, "log-keys", Unit::text, &o->log_keys,
        "how keys of the data stand in log lines: full, hash (keyed with a secret of the database) or none"},
       {kGroup, "slow-transaction", Unit::duration, &o->database.slow_transaction_us,
        "time from the admission to the answer from which on a transaction is slow, and gets a log line that says why; "
        "0: "
        "none is"},
       {kGroup, "slow-sync", Unit::duration, &o->database.slow_sync_us,
        "time from which on a sync of the commit log is slow, and gets a log line; 0: none is"}});
}

void add_batching(DatabaseOptions* o, std::vector<Setting>* s) {
  constexpr auto kBatches = "Batches";
  constexpr auto kAdmission = "Admission and waiting";
  s->insert(
      s->end(),
      {{kBatches, "batch-max-transactions", Unit::count, &o->batch_max_transactions, "most transactions in one batch"},
       {kBatches, "batch-max-delay", Unit::duration, &o->batch_max_delay_us,
        "longest time that a batch waits for more transactions while another batch is in flight; an idle server does "
        "not wait"},
       {kBatches, "batch-max-bytes", Unit::size, &o->batch_max_bytes,
        "most bytes of a batch: of its log record, or of the keys and values that it names; the log record may be four "
        "times as long, because stored values count a quarter; a single transaction may exceed it"},
       {kBatches, "batch-max-reads", Unit::count, &o->batch_max_reads,
        "most keys that the guards, reads and ranges of a batch may look at; a single transaction may exceed it"},
       {kBatches, "batch-in-flight-max", Unit::count, &o->batch_in_flight_max,
        "most batches that were executed and are not yet durable; one more may be executed and not yet answered"},
       {kBatches, "clock-jump-max", Unit::duration, &o->clock_jump_us_max,
        "longest jump ahead of the system clock that the stamps of batches follow; after a longer one they go on "
        "without "
        "it"},
       {kBatches, "clock-gap-max", Unit::duration, &o->clock_gap_us_max,
        "longest time between the last batch and the system clock at the start; with a longer one the server does not "
        "start"},
       {kAdmission, "queue-transactions-max", Unit::count, &o->queue_transactions_max,
        "most transactions that were accepted and are not yet in a batch; more get RESOURCE_EXHAUSTED, unless the "
        "queue is empty; one client may hold only a part (docs/transactions.md, section 15.4)"},
       {kAdmission, "queue-bytes-max", Unit::size, &o->queue_bytes_max,
        "most bytes of transactions that were accepted and are not yet in a batch; more get RESOURCE_EXHAUSTED"},
       {kAdmission, "parked-max", Unit::count, &o->parked_max, "most parked transactions: they wait for their guards"},
       {kAdmission, "parked-bytes-max", Unit::size, &o->parked_bytes_max, "most bytes of parked transactions"},
       {kAdmission, "commands-in-flight-max", Unit::count, &o->commands_in_flight_max,
        "most commands in flight: opens and closes of sessions, attaches to them, cancels, and changes of users, "
        "roles and tokens"}});
}

void add_sessions_and_reads(DatabaseOptions* o, std::vector<Setting>* s) {
  constexpr auto kSessions = "Sessions";
  constexpr auto kUploads = "Uploaded read sets";
  constexpr auto kReads = "Snapshots and scans";
  s->insert(s->end(),
            {{kSessions, "sessions-max", Unit::count, &o->sessions_max, "most sessions that are open at once"},
             {kSessions, "session-lease-min", Unit::duration, &o->session_lease_us_min,
              "shortest lease that a client may ask for"},
             {kSessions, "session-lease-default", Unit::duration, &o->session_lease_us_default,
              "lease of a session whose client asks for none"},
             {kSessions, "session-lease-max", Unit::duration, &o->session_lease_us_max,
              "longest lease that a client may ask for"},
             {kSessions, "session-requests-max", Unit::count, &o->session_requests_max,
              "most requests of one session that are in flight or have stored results"},
             {kSessions, "session-bytes-max", Unit::size, &o->session_bytes_max,
              "most bytes of stored results of one session, with what its requests in flight may add"},
             {kSessions, "session-bytes-total-max", Unit::size, &o->session_bytes_total_max,
              "most bytes of stored results of all sessions; when it is reached, new requests in sessions are refused"},
             {kSessions, "result-bytes-max", Unit::size, &o->result_bytes_max,
              "longest stored result of one transaction; a longer one keeps only its version and outcome"},
             {kUploads, "read-set-keys-max", Unit::count, &o->read_set_keys_max, "most keys in one uploaded read set"},
             {kUploads, "uploads-bytes-max", Unit::size, &o->uploads_bytes_max,
              "most bytes of uploaded read sets that are not yet committed, over all sessions"},
             {kUploads, "session-uploads-bytes-max", Unit::size, &o->session_uploads_bytes_max,
              "most bytes of uploaded read sets of one session; a read set that needs more is refused"},
             {kUploads, "upload-idle-max", Unit::duration, &o->upload_idle_us_max,
              "time without a new chunk before an uploaded read set is dropped; the client uploads it again"},
             {kReads, "snapshot-bytes-max", Unit::size, &o->snapshot_bytes_max,
              "most bytes of before-images that are kept for scans"},
             {kReads, "snapshot-age-max", Unit::duration, &o->snapshot_age_us_max,
              "greatest age of a boundary that is kept for scans"},
             {kReads, "scan-pairs-max", Unit::count, &o->scan_pairs_max, "most pairs in one page of a scan"},
             {kReads, "scan-bytes-max", Unit::size, &o->scan_bytes_max,
              "most bytes in one page of a scan, or in one list of parked transactions"},
             {kReads, "scans-in-flight-max", Unit::count, &o->scans_in_flight_max,
              "most pages of scans, and lists of parked transactions, that are read at once"}});
}

void add_storage(ServerOptions* options, std::vector<Setting>* s) {
  constexpr auto kCheckpoints = "Checkpoints";
  constexpr auto kStorage = "Storage";
  DatabaseOptions* o = &options->database;
  StorageOptions* storage = &options->storage;
  s->insert(
      s->end(),
      {{kCheckpoints, "checkpoint-log-bytes", Unit::size, &o->checkpoint_log_bytes,
        "bytes of log since the last checkpoint that start the next one"},
       {kCheckpoints, "checkpoint-interval", Unit::duration, &o->checkpoint_interval_us,
        "time since the last checkpoint that starts the next one"},
       {kCheckpoints, "tombstone-retention", Unit::duration, &o->tombstone_retention_us,
        "time for which the version of a deleted key is kept"},
       {kCheckpoints, "tombstones-max", Unit::count, &o->tombstones_max,
        "about the most deleted keys whose version is kept; beyond it, the oldest ones go before their time"},
       {kCheckpoints, "expiry-batch-max", Unit::count, &o->expiry_batch_max,
        "most keys that expire in one batch; a bound on its time, which the server chooses, is mostly lower"},
       {kStorage, "history-retention", Unit::duration, &storage->history_retention_us,
        "time for which log records before the checkpoint are kept"},
       {kStorage, "history-bytes-max", Unit::size, &storage->history_bytes_max,
        "most bytes of log records before the checkpoint"},
       {kStorage, "backup-rate-max", Unit::size, &options->service.backup_rate_max,
        "most bytes per second that a backup reads and sends"},
       {kStorage, "backup-age-max", Unit::duration, &options->service.backup_age_us_max,
        "time from its begin for which the server keeps what a backup needs, so that the backup can go on after a lost "
        "connection"},
       {kStorage, "archive-dir", Unit::text, &storage->archive_dir,
        "directory to which log records are copied, for a restore to any moment after a backup; empty: none"},
       {kStorage, "archive-interval", Unit::duration, &storage->archive_interval_us,
        "longest time after which a durable log record is in the archive"},
       {kStorage, "archive-lag-max", Unit::size, &storage->archive_lag_max,
        "most bytes of log that are kept because a backup or the archive still needs them; beyond it the backup ends, "
        "and the archive ends unless it is required"},
       {kStorage, "archive-required", Unit::on_off, &storage->archive_required,
        "whether new work is refused, instead of ending the archive, when the archive lacks more than "
        "--archive-lag-max"},
       {kStorage, "disk-reserve", Unit::size, &storage->disk_reserve_bytes,
        "free space of the file system that new work may not use"},
       {kStorage, "log-buffer", Unit::size, &storage->log_buffer_bytes, "size of one memory buffer of the log"},
       {kStorage, "state-buffer", Unit::size, &storage->state_buffer_bytes, "size of one memory buffer of the state"},
       {kStorage, "write-ahead-log-max", Unit::size, &storage->write_ahead_log_bytes_max,
        "most bytes of write-ahead log that the next start reads again"}});
}

void add_security(ServerOptions* options, std::vector<Setting>* s) {
  TlsOptions* const o = &options->service.tls;
  constexpr auto kSecurity = "Security";
  s->insert(s->end(),
            {{kSecurity, "tls-cert", Unit::text, &o->cert_file,
              "PEM file of the server's certificate, followed by those of its issuers; empty: no TLS"},
             {kSecurity, "tls-key", Unit::text, &o->key_file, "PEM file of the private key of the certificate"},
             {kSecurity, "tls-client-ca", Unit::text, &o->client_ca_file,
              "PEM file of authorities; every client needs a certificate of one of them; empty: clients need none"},
             {kSecurity, "tls-crl-dir", Unit::text, &o->crl_dir,
              "folder of PEM files with the revocation lists of these authorities; empty: nothing is revoked"},
             {kSecurity, "login", Unit::on_off, &options->service.login,
              "whether every call needs a login, with a token or a client certificate; off: everybody who reaches the "
              "port may do everything"},
             {kSecurity, "bootstrap-file", Unit::text, &options->bootstrap.file,
              "file with the token of user admin. The server uses it if there are no users yet, and makes it if it is "
              "missing; only its owner may have rights to it"},
             {kSecurity, "bootstrap-again", Unit::on_off, &options->bootstrap.again,
              "whether this start makes one more administrator, with a new token in a new --bootstrap-file; for when "
              "all tokens of administrators are lost"},
             {kSecurity, "insecure", Unit::on_off, &options->insecure,
              "whether the server may listen for other machines without TLS or without logins"},
             {kSecurity, "core-dumps", Unit::on_off, &options->core_dumps,
              "whether a crash leaves a core file, which holds data, keys and tokens"}});
}

void add_limits(ServerOptions* options, std::vector<Setting>* s) {
  constexpr auto kConnections = "Connections";
  constexpr auto kMessages = "Messages and streams";
  constexpr auto kLimits = "Limits of a transaction";
  ServiceOptions* o = &options->service;
  engine::TransactionLimits* limits = &o->limits;
  s->insert(
      s->end(),
      {{kConnections, "connections-max", Unit::count, &o->connections_max,
        "most open connections; fewer if the limit of descriptors (ulimit -n) is low"},
       {kConnections, "connections-per-address-max", Unit::count, &o->connections_per_address_max,
        "most open connections of one client address; the addresses of a /64 of IPv6 count as one"},
       {kConnections, "connection-opens-max", Unit::count, &o->connection_opens_max,
        "most new connections of one client address per second, after as many at once as one address may have open; "
        "more are closed; also most requests for pages over HTTP"},
       {kConnections, "connection-cancels-max", Unit::count, &o->connection_cancels_max,
        "most calls per second that one connection may cancel; a call without a valid login counts as eight; beyond it "
        "the connection is closed"},
       {kConnections, "handshake-timeout", Unit::duration, &o->handshake_us_max,
        "longest time from a new connection to the first settings of HTTP/2, or to the end of the headers of a request "
        "for a page; then the connection is closed"},
       {kConnections, "connection-idle-max", Unit::duration, &o->connection_idle_us_max,
        "longest time without a call; then the connection is closed, and clients connect again by themselves"},
       {kConnections, "http-connections-max", Unit::count, &options->http.http_connections_max,
        "most open connections for pages over HTTP, of which one address may have half, but at least 8; a new one "
        "takes the place of "
        "the "
        "one that has waited longest for its client"},
       {kMessages, "message-bytes-max", Unit::size, &o->message_bytes_max,
        "longest message, request or answer; gRPC clients accept 4MiB by default"},
       {kMessages, "grpc-memory-max", Unit::size, &o->grpc_memory_max,
        "most memory that gRPC may use for calls and for messages in flight; beyond it calls fail"},
       {kMessages, "request-transactions-max", Unit::count, &limits->request_transactions_max,
        "most transactions in one request"},
       {kMessages, "calls-bytes-max", Unit::size, &o->calls_bytes_max,
        "most memory of open calls, of which one client may have a part; a further call is refused"},
       {kMessages, "streams-max", Unit::count, &o->streams_max,
        "most open Session streams and watches, of which one client may have a part; a further one is refused"},
       {kMessages, "stream-requests-max", Unit::count, &o->stream_requests_max,
        "requests in flight on one stream at which the server stops reading it for a while"},
       {kMessages, "stream-bytes-max", Unit::size, &o->stream_bytes_max,
        "bytes in flight on one stream at which the server stops reading it for a while"},
       {kMessages, "stream-answer-bytes-max", Unit::size, &o->stream_answer_bytes_max,
        "most bytes of answers that the client of one stream has not taken; beyond it the server cuts the stream"},
       {kMessages, "answers-bytes-max", Unit::size, &o->answers_bytes_max,
        "most bytes of answers that all clients have not taken; beyond it, or beyond the share of a client, calls "
        "fail"},
       {kMessages, "answer-timeout", Unit::duration, &o->answer_us_max,
        "time in which a client must take an answer; then the server cancels the call"},
       {kLimits, "key-bytes-max", Unit::size, &limits->key_bytes_max, "longest key"},
       {kLimits, "value-bytes-max", Unit::size, &limits->value_bytes_max, "longest value"},
       {kLimits, "guards-max", Unit::count, &limits->guards_max,
        "most guards of a transaction, uploaded guards not counted"},
       {kLimits, "operations-max", Unit::count, &limits->operations_max,
        "most operations of a transaction, both lists together"},
       {kLimits, "range-keys-max", Unit::count, &limits->range_keys_max, "most keys of one range operation"},
       {kLimits, "transaction-keys-max", Unit::count, &limits->transaction_keys_max,
        "most keys of all range operations of a transaction together"},
       {kLimits, "transaction-reads-max", Unit::count, &options->database.transaction_reads_max,
        "most keys that the guards, reads and ranges of a transaction may look at, uploaded guards not counted; a "
        "range guard counts 384"},
       {kLimits, "transaction-copies-max", Unit::count, &options->database.transaction_copies_max,
        "most PUTs of a transaction that copy the value of one of its GETs"},
       {kLimits, "wait-timeout-max", Unit::duration, &options->database.wait_timeout_us_max,
        "longest wait_timeout of a transaction"},
       {kLimits, "ttl-max", Unit::duration, &limits->ttl_us_max, "longest time to live of a key"}});
}

std::vector<Setting> settings_of(ServerOptions* options) {
  std::vector<Setting> settings;
  add_program(options, &settings);
  add_strategies(&options->engine, &settings);
  add_batching(&options->database, &settings);
  add_sessions_and_reads(&options->database, &settings);
  add_storage(options, &settings);
  add_security(options, &settings);
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
    case Unit::on_off: return "on|off";
  }
  return "";
}

std::string description(const Setting& setting) {
  const bool is_narrow = std::holds_alternative<std::uint32_t*>(setting.target);
  const std::uint64_t most = is_narrow ? std::numeric_limits<std::uint32_t>::max() : ~std::uint64_t{0};
  switch (setting.unit) {
    case Unit::text: return "a text";
    case Unit::count: return "a whole number up to " + std::to_string(most);
    case Unit::size: return "a size: a whole number of bytes, or one with KiB, MiB, GiB or TiB, such as 4096 or 64MiB";
    case Unit::duration: return "a duration: a whole number with us, ms, s, m or h, such as 500us or 24h";
    case Unit::share: return "a share from 0 to 1, such as 0.05";
    case Unit::on_off: return "on or off";
  }
  return "";
}

std::string format(const Setting& setting) {
  if (const auto* text = std::get_if<std::string*>(&setting.target)) return **text;
  if (const auto* duration = std::get_if<DurationUs*>(&setting.target)) return format_duration(**duration);
  if (const auto* share = std::get_if<double*>(&setting.target)) return format_share(**share);
  if (const auto* is_on = std::get_if<bool*>(&setting.target)) return **is_on ? "on" : "off";
  const auto* narrow = std::get_if<std::uint32_t*>(&setting.target);
  const std::uint64_t value = narrow != nullptr ? **narrow : *std::get<std::uint64_t*>(setting.target);
  return setting.unit == Unit::size ? format_size(value) : std::to_string(value);
}

// Parses `text` and stores it in the setting's target. False if it does not fit the kind of the setting.
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
  if (auto* target = std::get_if<bool*>(&setting.target)) {
    **target = text == "on";
    return text == "on" || text == "off";
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

// A value, and the place that it comes from, such as kilokvd.toml:3:1: batch-max-delay.
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

// For a key of the file that no setting has. Other programs write such keys with underscores.
std::string meant_by(const std::string& key, const std::vector<Setting>& settings) {
  std::string name = key;
  std::replace(name.begin(), name.end(), '_', '-');
  const bool known = std::any_of(settings.begin(), settings.end(), [&](const Setting& s) { return name == s.name; });
  return known ? "did you mean " + name + "?"
               : "a key is a flag without its dashes, and kilokvd --help lists the flags";
}

Status read_file(const std::string& path, const std::vector<Setting>& settings, GivenByName* given) {
  Result<std::vector<FileValue>> values = read_config_file(path);
  if (!values.ok()) return values.status();
  for (FileValue& value : *values) {
    const bool known =
        std::any_of(settings.begin(), settings.end(), [&](const Setting& s) { return value.name == s.name; });
    if (!known) return invalid(value.source + ": unknown key; " + meant_by(value.name, settings));
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

// Replaces each flag in the message by the source of its value. Only the first mention of a flag is replaced.
std::string with_sources(const std::string& message, GivenByName given) {
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz-";
  std::string text;
  std::size_t told = 0;
  for (std::size_t dashes = 0; (dashes = message.find("--", dashes)) != std::string::npos;) {
    if (std::count(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(dashes), '"') % 2 != 0) {
      dashes += 2;  // skips dashes inside a quoted value
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

// The flags for CLI11. All are texts, so that values from all sources are parsed in the same way.
struct Flags {
  CLI::App app{"kilokvd: transactional key-value database service", "kilokvd"};
  std::map<std::string, std::string> texts;  // by name; CLI11 keeps pointers to them, and a map never moves its nodes
  std::string config_file;
  bool check_config = false, create_database = false;

  explicit Flags(const std::vector<Setting>& settings) {
    app.set_help_flag("-h,--help", "print this help and exit");
    app.set_version_flag("--version", std::string("kilokvd ") + kVersion + " (commit " + kCommit + ")",
                         "print the version and the commit, and exit");
    app.add_option("--config", config_file, "read settings from this TOML file")->type_name("FILE");
    app.add_flag(
        "--check-config", check_config,
        "check all that a start checks before it opens a port or the data directory, print the result, and exit");
    app.add_flag("--create-database", create_database,
                 "make a new, empty database in --data-dir if there is none, print the result, and exit");
    for (const Setting& setting : settings) {
      const std::string text = format(setting);
      app.add_option("--" + std::string(setting.name), texts[setting.name], setting.help)
          ->group(setting.group)
          ->option_text(std::string(placeholder(setting.unit)) + (text.empty() ? "" : " [" + text + "]"));
    }
    app.footer(
        "Brackets hold defaults. SIZE is a number of bytes, or a number with KiB, MiB, GiB or TiB.\n"
        "DURATION is a number with us, ms, s, m or h. SHARE is a number from 0 to 1.\n"
        "Every flag --some-name is also the environment variable KILOKV_SOME_NAME, and the key some-name in the\n"
        "--config file. A flag wins over the environment, and the environment wins over the file.");
    app.get_formatter()->column_width(44);
  }
};

// Says what is wrong with the command line. CLI11's own messages are about its types and counts, so users see these.
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
  return "the command line cannot be read";
}

Status check_choice(const char* setting, const std::string& actual, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), actual) != allowed.end()) return {};
  std::string list;
  for (const std::string& choice : allowed) list += (list.empty() ? "" : ", ") + choice;
  return invalid(std::string(setting) + " is \"" + actual + "\": it must be one of " + list);
}

// `set_by` names the flag that sets the limit, if there is one.
Status check_most(const char* setting, std::uint64_t actual, std::uint64_t most, const std::string& set_by = {}) {
  if (actual <= most) return {};
  return Status::invalid({setting, "0 to " + std::to_string(most) + set_by, std::to_string(actual), setting});
}

Status check_longest(const char* setting, DurationUs actual, DurationUs longest) {
  if (actual <= longest) return {};
  return Status::invalid({setting, "0 to " + format_duration(longest), format_duration(actual), setting});
}

// `or_else`: what it may be, too.
Status check_listen(const char* setting, const std::string& listen, const char* or_else = "") {
  const std::size_t colon = listen.rfind(':');
  if (colon != std::string::npos && colon != 0) {
    const auto port = parse_count(std::string_view(listen).substr(colon + 1));
    if (port && *port <= 65535) return {};
  }
  return invalid(std::string(setting) + " is \"" + listen + "\": it must be HOST:PORT with a port from 0 to 65535" +
                 or_else);
}

Status check_http(const HttpOptions& http) {
  constexpr std::uint32_t kConnectionsMax = 4096;
  Status status = http.enabled() ? check_listen("--http-listen", http.http_listen, ", or off") : Status();
  if (!status.ok() || (http.http_connections_max >= 1 && http.http_connections_max <= kConnectionsMax)) return status;
  return Status::invalid({"--http-connections-max", "1 to " + std::to_string(kConnectionsMax),
                          std::to_string(http.http_connections_max), "--http-connections-max"});
}

void note_changes(const std::vector<Setting>& settings, ServerOptions* options) {
  ServerOptions defaults;
  const std::vector<Setting> standard = settings_of(&defaults);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::string value = format(settings[i]);
    if (value == format(standard[i])) continue;
    options->changed.emplace_back(settings[i].name,
                                  settings[i].unit == Unit::text ? '"' + one_line(value) + '"' : value);
  }
}

}  // namespace

Status ServerOptions::validate() const {
  Status status = check_listen("--listen", listen);
  if (status.ok()) status = check_http(http);
  if (status.ok()) status = engine.validate();
  if (status.ok()) {
    status = check_choice("--log-level", log_level, {"trace", "debug", "info", "warning", "error", "critical", "off"});
  }
  if (status.ok()) status = check_choice("--log-format", log_format, {"text", "json"});
  if (status.ok()) status = check_choice("--log-keys", log_keys, {"full", "hash", "none"});
  if (status.ok()) status = check_longest("--drain-timeout", drain_timeout_us, kDurationUsMax);
  // A slot number of the table has 32 bits.
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
  for (const auto& [name, value] : given) line.options.given.insert(name);
  // A mistyped path would look like a restore of nothing.
  if (line.options.database.read_only && given.find("create") == given.end()) line.options.storage.create = "never";
  line.options.storage.own_files = {line.options.log_file, line.options.port_file, line.options.bootstrap.file};
  line.options.service.limits.wait_timeout_us_max = line.options.database.wait_timeout_us_max;
  line.options.database.guards_max = line.options.service.limits.guards_max;
  line.options.database.certificates_log_in = !line.options.service.tls.client_ca_file.empty();
  status = line.options.validate();
  if (!status.ok()) return Status(status.code(), status.reason(), with_sources(status.message(), std::move(given)));
  note_changes(settings, &line.options);
  if (flags.create_database) line.action = CommandLine::Action::create_database;
  if (flags.check_config) line.action = CommandLine::Action::check_config;
  return line;
}

std::string help_text() {
  ServerOptions defaults;
  return Flags(settings_of(&defaults)).app.help();
}

}  // namespace kilokv::server
