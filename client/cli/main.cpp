// kilokv: the command line client. This file names the arguments of each command (commands.hpp), with their help.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <vector>

#include "client/cli/access_commands.hpp"
#include "client/cli/activity_commands.hpp"
#include "client/cli/backup_commands.hpp"
#include "client/cli/bulk/bulk_flags.hpp"
#include "client/cli/commands.hpp"
#include "client/command_line/arguments.hpp"
#include "client/command_line/secrets.hpp"
#include "client/command_line/server_flags.hpp"

namespace kilokv::client {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 a guard failed, a transaction did not commit, a key is absent, an export or import is not\n"
    "complete, or check found a damage; 2 wrong usage or wrong input; 3 the server refused the input; 4 no server, no\n"
    "answer in time, or a full server; 5 a file that cannot be read or written, or any other error; 130 Ctrl-C, or\n"
    "143 SIGTERM, ended an export or import.";

// What the chosen command does. It runs after the command line has been parsed.
using Action = std::function<ExitCode()>;

CLI::App* add_command(CLI::App* app, const char* name, const char* description, const char* examples) {
  CLI::App* command = add_subcommand(app, name, description);
  command->footer(std::string("Examples:\n") + examples);
  return command;
}

void add_common(CLI::App* app, CommonOptions* common) {
  const std::map<std::string, OutputFormat> formats = {{"text", OutputFormat::text}, {"json", OutputFormat::json}};
  app->add_option("--output", common->output,
                  "form of the output: text, or json with one object in each line; default text")
      ->transform(CLI::Transformer(formats))
      ->transform(one_of({"text", "json"}))
      ->option_text("text|json");
  app->add_option("--timeout", common->timeout_us,
                  "longest time to connect, and for each request without its waits; default 5s")
      ->transform(duration(1))
      ->option_text("DURATION, such as 500ms or 5s");
  app->add_option(
         "--traceparent", common->traceparent,
         "trace of the transactions that the command sends, as in the header traceparent of W3C Trace Context; "
         "the server logs it with slow ones")
      ->option_text("TEXT");
}

void add_writes(CLI::App* app, const CommonOptions* common, Action* action) {
  struct Arguments {
    std::string key, value;
    std::vector<std::string> keys;
    std::int64_t delta = 0;
    bool as_bytes = false, raw = false;
    std::int64_t ttl_us = 0;  // 0: the key does not expire
  };
  const auto a = std::make_shared<Arguments>();
  CLI::App* put =
      add_command(app, "put", "Write a value, and print its version",
                  "  kilokv put stock:42 100\n  kilokv put name --string 100\n  kilokv put page - <page.html\n"
                  "  kilokv put cart:7 3 --ttl 30m");
  put->add_option("key", a->key)->required();
  put->add_option("value", a->value, "stored as an integer if it is written as one, else as bytes; -: standard input")
      ->required();
  put->add_flag("--bytes,--string", a->as_bytes, "store the value as bytes, even if it looks like an integer");
  put->add_option("--ttl", a->ttl_us,
                  "time to live: the server deletes the key after this time; default: it never does")
      ->transform(duration(1))
      ->option_text("DURATION, such as 30s or 12h");
  put->callback([=] { *action = [=] { return run_put(*common, a->key, a->value, a->as_bytes, a->ttl_us); }; });

  CLI::App* get = add_command(app, "get", "Print the values of keys, all as of one moment",
                              "  kilokv get stock:42\n  kilokv --output json get alice bob\n"
                              "  kilokv get --raw page >page.html");
  get->add_option("key", a->keys)->required();
  get->add_flag("--raw", a->raw,
                "print exactly the bytes of the value of one key, without a newline; an integer as its digits");
  get->callback([=] { *action = [=] { return run_get(*common, a->keys, a->raw); }; });

  CLI::App* del =
      add_command(app, "del", "Delete keys in one transaction, and print its version", "  kilokv del stock:42");
  del->add_option("key", a->keys)->required();
  del->callback([=] { *action = [=] { return run_del(*common, a->keys); }; });

  CLI::App* add = add_command(app, "add", "Add to an integer, and print the sum; an absent key counts as 0",
                              "  kilokv add stock:42 10\n  kilokv add stock:42 -3");
  add->add_option("key", a->key)->required();
  add->add_option("delta", a->delta)->required()->transform(signed_number());
  add->callback([=] { *action = [=] { return run_add(*common, a->key, a->delta); }; });
}

void add_scan(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<ScanArguments>();
  CLI::App* scan = add_command(app, "scan", "Print pairs in key order, all as of one moment",
                               "  kilokv scan\n  kilokv scan a m --limit 10\n  kilokv scan --prefix stock:\n"
                               "  kilokv scan --prefix log: --reverse --limit 1");
  CLI::Option* from = scan->add_option("from", a->from, "first key of the range; default: the first key of all");
  scan->add_option("to", a->to, "end of the range, not included; default: after the last key");
  scan->add_option("--prefix", a->prefix, "print only keys that begin with this text")->excludes(from);
  scan->add_flag("--reverse", a->reverse, "print from the last key to the first");
  scan->add_option("--limit", a->limit, "most pairs that are printed; 0: all")
      ->transform(whole_number())
      ->capture_default_str();
  scan->callback([=] { *action = [=] { return run_scan(*common, *a); }; });
}

void add_watch(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<WatchRangeArguments>();
  CLI::App* watch = add_command(app, "watch", "Print the durable writes of a range as they come, in their order",
                                "  kilokv watch --prefix stock:\n  kilokv --output json watch --after 0\n"
                                "  kilokv watch --prefix job: --limit 1");
  CLI::Option* from = watch->add_option("from", a->from, "first key of the range; default: the first key of all");
  watch->add_option("to", a->to, "end of the range, not included; default: after the last key");
  watch->add_option("--prefix", a->prefix, "print only writes of keys that begin with this text")->excludes(from);
  watch->add_option("--after", a->after,
                    "VERSION, or VERSION:WRITES as --positions prints them: print only what comes after it; default: "
                    "what comes from now on");
  watch->add_option("--incarnation", a->incarnation,
                    "that of the database when it gave the position, as --positions prints it; refused if the database "
                    "was restored since");
  watch->add_option("--through", a->through, "end when all writes up to this version are printed; 0: do not end")
      ->transform(whole_number())
      ->capture_default_str();
  watch->add_option("--limit", a->limit, "end after this number of writes; 0: do not end")
      ->transform(whole_number())
      ->capture_default_str();
  watch->add_flag("--positions", a->positions,
                  "print the position after each answer, with the incarnation, as a JSON object");
  watch->callback([=] { *action = [=] { return run_watch(*common, *a); }; });
}

CLI::Option* add_session_file(CLI::App* command, std::string* file) {
  return command
      ->add_option("--session-file", *file,
                   std::string("file with the whole id of the session; default: the variable ") +
                       kSessionSource.file_variable + "; the variable " + kSessionSource.variable +
                       " can hold the id itself")
      ->option_text("FILE");
}

void add_session(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<SessionArguments>();
  CLI::App* session = add_command(app, "session", "Take over a session whose program has gone",
                                  "  kilokv session attach --session-file pay.session");
  session->require_subcommand(1);
  CLI::App* attach = add_command(session, "attach",
                                 "Attach to a session, and print what has become of its requests; the program that "
                                 "had the session cannot use it any more",
                                 "  kilokv session attach --session-file pay.session\n"
                                 "  kilokv --output json session attach --session-file pay.session --request 7");
  add_session_file(attach, &a->file);
  attach
      ->add_option("--request", a->request,
                   "print only the request with this number; exit code 1 unless all of it is decided; default: all")
      ->transform(whole_number(1));
  attach->callback([=] { *action = [=] { return run_session_attach(*common, *a); }; });
}

void add_parked(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<CancelArguments>();
  CLI::App* parked = add_command(app, "parked", "List or cancel parked transactions: they wait on the server",
                                 "  kilokv parked list\n  kilokv parked cancel 17");
  parked->require_subcommand(1);
  CLI::App* list = add_command(parked, "list", "List the parked transactions, the oldest first",
                               "  kilokv --output json parked list");
  list->callback([=] { *action = [=] { return run_parked_list(*common); }; });
  CLI::App* cancel = add_command(parked, "cancel",
                                 "Cancel one parked transaction, all that a request still has, or all of a client, a "
                                 "prefix or an age; exit code 1 "
                                 "if none was",
                                 "  kilokv parked cancel 17\n"
                                 "  kilokv parked cancel --session-file pay.session --request 3\n"
                                 "  kilokv parked cancel --client ipv4:127.0.0.1:40000\n"
                                 "  kilokv parked cancel --prefix order/ --older-than 10m");
  CLI::Option* id = cancel->add_option("id", a->parked_id, "id of a parked transaction, as `parked list` prints it")
                        ->transform(whole_number(1));
  CLI::Option* request =
      cancel->add_option("--request", a->request, "number of a request in the session of --session-file")
          ->transform(whole_number(1))
          ->excludes(id);
  CLI::Option* session = add_session_file(cancel, &a->session_file)->needs(request);
  cancel->add_option("--holder", a->holder, "holder of the session, as `session attach` prints it; default: 0")
      ->transform(whole_number())
      ->needs(request);
  cancel->add_option("--index", a->index, "index of one transaction in the request; default: all of them")
      ->transform(whole_number(0, std::numeric_limits<std::uint32_t>::max()))
      ->needs(request);
  std::vector<CLI::Option*> filters = {
      cancel->add_option("--client", a->filter.client, "all that this client has sent, as `parked list` prints it"),
      cancel->add_option("--prefix", a->filter.key_prefix, "all that wait for a key that begins with this"),
      cancel->add_option("--older-than", a->filter.older_than_us, "all that are parked for this time or longer")
          ->transform(duration(1))
          ->type_name("DURATION")};
  for (CLI::Option* filter : filters) filter->excludes(id)->excludes(session)->excludes(request);
  cancel->callback([=] {
    const bool has_filter = std::any_of(filters.begin(), filters.end(), [](const auto* f) { return !f->empty(); });
    if (id->empty() && request->empty() && !has_filter) {
      throw CLI::RequiredError("id, or --session-file and --request, or --client, --prefix or --older-than,");
    }
    *action = [=] { return run_parked_cancel(*common, *a); };
  });
}

void add_txn(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<TxnArguments>();
  CLI::App* txn = add_command(
      app, "txn", "Run transactions: read JSON objects, and print a history line for each (docs/history.md)",
      "  echo '{\"guards\": [{\"key\": \"alice\", \"is\": \"ge\", \"value\": 10}],\n"
      "         \"then\": [{\"op\": \"add\", \"key\": \"alice\", \"delta\": -10},\n"
      "                  {\"op\": \"add\", \"key\": \"bob\", \"delta\": 10}]}' | kilokv txn\n"
      "  kilokv txn --batch transfers.jsonl\n\n"
      "Fields of a transaction:\n"
      "  guards           each with \"is\", and \"when_false\": \"fail\" (the default) or \"wait\"\n"
      "  then, else       operations, each with \"op\"; else runs if a guard says fail\n"
      "  wait_timeout_ms  longest wait on the server; expire_runs_else: true runs else after it\n"
      "  precedence       0 to 255: in a batch, lower ones come first\n\n"
      "Guards:\n"
      "  exists, absent                  \"key\"\n"
      "  eq, ne, lt, le, gt, ge          \"key\", and \"value\" or \"other\" (another key)\n"
      "  bytes_eq                        \"key\", \"value\"\n"
      "  version, unchanged              \"key\", \"version\"\n"
      "  range_unchanged                 \"from\", \"to\", \"version\"\n"
      "  time_before, time_after         \"time_us\", or \"key\" whose value is a time\n\n"
      "Operations:\n"
      "  get, delete                     \"key\"\n"
      "  put                             \"key\", \"value\"; also \"ttl_us\" or \"expires_at_us\"\n"
      "  add                             \"key\", \"delta\"; also \"ttl_us\" or \"expires_at_us\"\n"
      "  range_get, delete_range         \"from\", \"to\", \"limit\"; range_get also \"reverse\": true\n\n"
      "A value is an integer, or bytes as {\"b64\": \"...\"}. A key is text, or bytes in the same form.");
  txn->add_option("file", a->file, "file of JSON objects, each on one or more lines; -: standard input")
      ->capture_default_str();
  txn->add_flag("--batch", a->batch,
                "send all transactions as one request: they may run in any order, and are refused together");
  txn->add_flag("--detached", a->detached,
                "send without a session; transactions that were sent go on if this program ends before their answers, "
                "and a lost answer is not asked for again");
  txn->add_option("--session-file", a->session_file,
                  "write the id of the session to this new file before anything is sent, and remove the file when all "
                  "answers are there; `kilokv session attach` reads it")
      ->option_text("FILE")
      ->excludes("--detached");
  txn->callback([=] { *action = [=] { return run_txn(*common, *a); }; });
}

void add_role(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<RightsArguments>();
  CLI::App* role = add_command(app, "role", "Give rights to roles, on a server with logins",
                               "  kilokv role grant teller --read account/ --write account/\n  kilokv role list");
  role->require_subcommand(1);
  CLI::App* list = add_command(role, "list", "List the roles and their rights", "  kilokv role list");
  list->callback([=] { *action = [=] { return run_role_list(*common); }; });
  const auto add_rights = [=](CLI::App* command) {
    command->add_option("role", a->role, "name of the role")->required();
    command->add_option("--read", a->read_prefixes, "right to read keys that begin with this; empty: all keys")
        ->option_text("PREFIX ...");
    command->add_option("--write", a->write_prefixes, "right to write keys that begin with this; empty: all keys")
        ->option_text("PREFIX ...");
    command->add_option("--read-range", a->read_ranges, "right to read keys from FROM on that are less than TO")
        ->type_size(2)
        ->option_text("FROM TO ...");
    command->add_option("--write-range", a->write_ranges, "right to write keys from FROM on that are less than TO")
        ->type_size(2)
        ->option_text("FROM TO ...");
    command->add_flag("--admin", a->admin,
                      "right to change users, roles and tokens, and to list and cancel what others parked");
    command->add_flag("--metrics", a->metrics, "right to see the status of the server");
  };
  CLI::App* grant = add_command(role, "grant", "Add rights to a role; a role that does not exist is made",
                                "  kilokv role grant auditor --read account/ --metrics");
  add_rights(grant);
  grant->callback([=] { *action = [=] { return run_role_grant(*common, *a); }; });
  CLI::App* revoke =
      add_command(role, "revoke", "Take rights away from a role; a range must be one that `role list` prints",
                  "  kilokv role revoke teller --write account/");
  add_rights(revoke);
  revoke->callback([=] { *action = [=] { return run_role_revoke(*common, *a); }; });
  CLI::App* remove = add_command(role, "remove", "Remove a role, also from its users", "  kilokv role remove teller");
  remove->add_option("role", a->role, "name of the role")->required();
  remove->callback([=] { *action = [=] { return run_role_remove(*common, a->role); }; });
}

void add_user(CLI::App* app, const CommonOptions* common, Action* action) {
  const auto a = std::make_shared<UserChange>();
  CLI::App* user = add_command(app, "user", "Make and change users, on a server with logins",
                               "  kilokv user set alice --role teller\n  kilokv user list");
  user->require_subcommand(1);
  CLI::App* list = add_command(user, "list", "List the users", "  kilokv user list");
  list->callback([=] { *action = [=] { return run_user_list(*common); }; });
  CLI::App* set = add_command(user, "set", "Change a user; a user that does not exist is made",
                              "  kilokv user set alice --role teller --certificate alice.example\n"
                              "  kilokv user set alice --remove-role teller\n"
                              "  kilokv user set batch-jobs --weight 5");
  set->add_option("user", a->user, "name of the user")->required();
  set->add_option("--role", a->add_roles, "give the user this role")->option_text("ROLE ...");
  set->add_option("--remove-role", a->remove_roles, "take this role away")->option_text("ROLE ...");
  set->add_option("--certificate", a->add_certificates, "let a client certificate with this name log the user in")
      ->option_text("NAME ...");
  set->add_option("--remove-certificate", a->remove_certificates, "do not let it any more")->option_text("NAME ...");
  set->add_option("--weight", a->weight,
                  "the user's part of the turns, compared with those of others: 1 to 100; default: 1 for a new user")
      ->option_text("N")
      ->check(CLI::Range(1, 100));
  set->callback([=] { *action = [=] { return run_user_set(*common, *a); }; });
  CLI::App* remove = add_command(user, "remove", "Remove a user with its tokens", "  kilokv user remove alice");
  remove->add_option("user", a->user, "name of the user")->required();
  remove->callback([=] { *action = [=] { return run_user_remove(*common, a->user); }; });
}

void add_token(CLI::App* app, const CommonOptions* common, Action* action) {
  struct Arguments {
    std::string user, id, file;
    std::uint64_t expires_in_us = 0;
  };
  const auto a = std::make_shared<Arguments>();
  CLI::App* token = add_command(app, "token", "Make and remove tokens, with which users log in",
                                "  kilokv token create alice --file alice.token\n  kilokv token list");
  token->require_subcommand(1);
  CLI::App* list = add_command(token, "list", "List the tokens, without their secrets", "  kilokv token list");
  list->callback([=] { *action = [=] { return run_token_list(*common); }; });
  CLI::App* create = add_command(token, "create", "Make a token of a user; it is shown only once",
                                 "  kilokv token create alice --file alice.token --expires-in 720h");
  create->add_option("user", a->user, "name of the user")->required();
  create->add_option("--file", a->file, "write the token to this new file, instead of printing it")
      ->option_text("FILE");
  create->add_option("--expires-in", a->expires_in_us, "time after which the token does not count; default: never")
      ->transform(duration(1))
      ->option_text("DURATION, such as 12h");
  create->callback([=] { *action = [=] { return run_token_create(*common, a->user, a->expires_in_us, a->file); }; });
  CLI::App* remove = add_command(token, "remove", "Remove a token: it does not count any more",
                                 "  kilokv token remove 0123456789abcdef");
  remove->add_option("id", a->id, "id of the token, as `token list` prints it")->required();
  remove->callback([=] { *action = [=] { return run_token_remove(*common, a->id); }; });
}

// `check` and `restore` read files only. A login that cannot be read must not stop them: another user may run them.
bool needs_server(const CLI::App& app) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  return std::none_of(given.begin(), given.end(), [](const CLI::App* command) {
    return command->get_name() == "check" || command->get_name() == "restore";
  });
}

int run(int argc, char** argv) {
  const auto app = make_app("kilokv: command line client of KiloKV, a transactional key-value database", "kilokv");
  app->footer(kFooter);
  add_version_flag(app.get());
  app->require_subcommand(1);
  app->fallthrough();
  CommonOptions common;
  Action action;
  const ServerFlags server(app.get());
  add_common(app.get(), &common);
  add_writes(app.get(), &common, &action);
  add_scan(app.get(), &common, &action);
  add_watch(app.get(), &common, &action);
  add_parked(app.get(), &common, &action);
  add_txn(app.get(), &common, &action);
  add_session(app.get(), &common, &action);
  add_bulk(app.get(), &common, &action);
  add_role(app.get(), &common, &action);
  add_user(app.get(), &common, &action);
  add_token(app.get(), &common, &action);
  CLI::App* status = add_command(app.get(), "status", "Print the state of the server, its settings and its counters",
                                 "  kilokv --output json status\n  kilokv status --watch 2s");
  WatchArguments watch;
  add_watch(status, &watch);
  status->callback([&] { action = [&] { return run_status(common, watch); }; });
  add_activity(app.get(), &common, &action);
  std::string level;
  CLI::App* log_level =
      add_command(app.get(), "log-level",
                  "Print the level of the server's log, or change it until the server ends; needs the admin right",
                  "  kilokv log-level\n  kilokv log-level debug");
  log_level->add_option("level", level, "trace, debug, info, warning, error, critical or off; default: no change")
      ->transform(one_of({"trace", "debug", "info", "warning", "error", "critical", "off"}));
  log_level->callback([&] { action = [&] { return run_log_level(common, level); }; });
#ifdef KILOKV_HAS_BACKUP
  add_backup_commands(app.get(), &common, &action);
#endif
  add_help_command(app.get());
  if (const auto code = parse_arguments(app.get(), argc, argv)) return *code;
  if (const Error error = needs_server(*app) ? server.apply(&common.server) : Error()) {
    std::cerr << "kilokv: " << error.message << '\n';
    return static_cast<int>(exit_code_before_sending(error.code));
  }
  tell_timeouts(common.server, common.timeout_us);
  const ExitCode code = action();
  const bool written = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written) std::cerr << "kilokv: cannot write to standard output: the output is lost\n";
  return static_cast<int>(written ? code : ExitCode::other);
}

}  // namespace
}  // namespace kilokv::client

int main(int argc, char** argv) { return kilokv::client::run(argc, argv); }
