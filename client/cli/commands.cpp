// The commands of kilokv (commands.hpp), except those with files of their own (*_command.cpp).
#include "client/cli/commands.hpp"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <variant>

#include "client/cli/input_value.hpp"
#include "client/cli/value_input.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

// Sends one transaction in a session, so that it is applied once, however often it is sent. Prints nothing.
Expected<RequestResult> send(const CommonOptions& common, const Batch& batch) {
  auto client = connect(common);
  if (!client) return client.error();
  auto session = (*client)->open_session();
  if (!session) return session.error();
  return (*session)->execute(batch, common.call());
}

// Reports a transaction that did not commit. Otherwise prints `text`, or outcome and version with the `extra` fields as
// JSON.
ExitCode print_outcome(const CommonOptions& common, const RequestResult& sent, const std::string& text,
                       const nlohmann::json& extra = nlohmann::json::object()) {
  const ResultView result = sent.results.at(0);
  if (result.outcome != Outcome::committed) return report(result);
  if (common.output == OutputFormat::text) {
    std::cout << text << '\n';
    return ExitCode::ok;
  }
  nlohmann::json line = extra;
  line["outcome"] = to_string(result.outcome);
  line["version"] = result.version ? nlohmann::json(*result.version) : nlohmann::json();
  line["batch"] = result.batch;
  line["rank"] = result.rank;
  std::cout << line.dump() << '\n';
  return ExitCode::ok;
}

std::string version_text(const RequestResult& sent) {
  const auto version = sent.results.at(0).version;
  return version ? "version " + std::to_string(*version) : "nothing to write";
}

// Says why an `add` has no sum. Handles only the outcomes that are particular to `add`.
ExitCode report_sum(const ResultView& result, const std::string& key, std::int64_t delta) {
  if (result.outcome == Outcome::type_mismatch) {
    std::cerr << "kilokv: " << key_text(key) << " holds bytes; add needs an integer (TYPE_MISMATCH)\n";
    return ExitCode::not_done;
  }
  if (result.outcome == Outcome::overflow) {
    std::cerr << "kilokv: " << key_text(key) << " plus " << delta
              << " is outside the signed 64-bit range; the integer stays as it is (OVERFLOW)\n";
    return ExitCode::not_done;
  }
  return ExitCode::ok;
}

void print_read(const CommonOptions& common, const ReadView& read) {
  if (common.output == OutputFormat::json) {
    std::cout << read_json(read.key, read.value, read.version) << '\n';
  } else {
    std::cout << key_text(read.key) << '\t' << value_text(read.value) << '\n';
  }
}

nlohmann::json key_json(std::string_view key) {
  std::string text;
  append_history_key(key, &text);
  return nlohmann::json::parse(text);
}

nlohmann::json to_json(const ParkedTransaction& parked) {
  return {{"id", parked.id},
          {"session", parked.session},
          {"request", parked.request},
          {"index", parked.index},
          {"guard", parked.guard},
          {"guard_key", key_json(parked.guard_key)},
          {"admitted_batch", parked.admitted_batch},
          {"deadline_us", parked.deadline_us},
          {"since_us", parked.since_us},
          {"client", parked.client}};
}

// The value may be long. The batch has a copy of it, and nobody needs the text any more.
ExitCode append_put(const std::string& key, std::string_view text, bool as_bytes, const Expiry& expiry, Batch* batch) {
  const auto parsed = parse_value(text, as_bytes);
  if (!parsed) {
    constexpr std::size_t kShownMax = 40;
    std::cerr << "kilokv: " << text.substr(0, kShownMax) << (text.size() > kShownMax ? "..." : "")
              << " is outside the signed 64-bit range; --bytes stores its digits as bytes\n";
    return ExitCode::usage;
  }
  batch->begin();
  std::visit([&](const auto& operand) { batch->put(batch->key(key), operand, expiry); }, *parsed);
  batch->end();
  return ExitCode::ok;
}

ExitCode append_put_of_input(const std::string& key, bool as_bytes, const Expiry& expiry, Batch* batch) {
  const auto text = read_value(STDIN_FILENO);
  if (text) return append_put(key, *text, as_bytes, expiry, batch);
  if (text.error().code == ErrorCode::invalid_argument) return report(text.error());
  std::cerr << "kilokv: " << text.error().message << '\n';
  return exit_code(text.error().code);
}

}  // namespace

Expected<std::unique_ptr<Client>> connect(const CommonOptions& common) {
  ClientOptions options = common.server;
  options.connect_timeout_us = common.timeout_us;
  options.request_timeout_us = common.timeout_us;
  return Client::connect(options);
}

std::string prefix_end(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

ExitCode run_put(const CommonOptions& common, const std::string& key, const std::string& value, bool as_bytes,
                 std::int64_t ttl_us) {
  Batch batch;
  Expiry expiry;
  if (ttl_us != 0) expiry = TimeToLive{ttl_us};
  const ExitCode code = value == "-" ? append_put_of_input(key, as_bytes, expiry, &batch)
                                     : append_put(key, value, as_bytes, expiry, &batch);
  if (code != ExitCode::ok) return code;
  const auto sent = send(common, batch);
  return sent ? print_outcome(common, *sent, version_text(*sent)) : report(sent.error());
}

ExitCode run_get(const CommonOptions& common, const std::vector<std::string>& keys, bool raw) {
  if (raw && (keys.size() != 1 || common.output == OutputFormat::json)) {
    std::cerr << "kilokv: --raw prints one value and nothing else: give one key, and no --output json\n";
    return ExitCode::usage;
  }
  const char* const end = raw ? "" : "\n";
  const auto client = connect(common);
  if (!client) return report(client.error());
  const auto results = (*client)->get(keys, common.call());
  if (!results) return report(results.error());
  ExitCode code = ExitCode::ok;
  const bool plain = keys.size() == 1 && common.output == OutputFormat::text;
  for (std::size_t i = 0; i < results->read_count(0); ++i) {
    const ReadView read = results->read(0, i);
    const bool absent = std::holds_alternative<std::monostate>(read.value);
    if (absent) code = ExitCode::not_done;
    if (!plain) {
      print_read(common, read);
    } else if (absent) {
      std::cerr << "kilokv: key " << key_text(read.key) << " is absent\n";
    } else if (const auto* bytes = std::get_if<std::string_view>(&read.value)) {
      std::cout << *bytes << end;
    } else {
      std::cout << value_text(read.value) << end;
    }
  }
  return code;
}

ExitCode run_del(const CommonOptions& common, const std::vector<std::string>& keys) {
  Batch batch;
  batch.begin();
  for (const std::string& key : keys) batch.del(batch.key(key));
  batch.end();
  const auto sent = send(common, batch);
  return sent ? print_outcome(common, *sent, version_text(*sent)) : report(sent.error());
}

ExitCode run_add(const CommonOptions& common, const std::string& key, std::int64_t delta) {
  Batch batch;
  batch.begin();
  const Key at = batch.key(key);
  batch.add(at, delta);
  batch.get(at);  // reads the sum
  batch.end();
  const auto sent = send(common, batch);
  if (!sent) return report(sent.error());
  if (const ExitCode code = report_sum(sent->results.at(0), key, delta); code != ExitCode::ok) return code;
  if (sent->results.read_count(0) != 1) return print_outcome(common, *sent, version_text(*sent));
  const ValueView value = sent->results.read(0, 0).value;
  const auto* integer = std::get_if<std::int64_t>(&value);
  return print_outcome(common, *sent, value_text(value), {{"value", integer ? *integer : 0}});
}

ExitCode run_scan(const CommonOptions& common, const ScanArguments& arguments) {
  if (!arguments.to.empty() && arguments.to < arguments.from) {
    std::cerr << "kilokv: TO " << key_text(arguments.to) << " is before FROM " << key_text(arguments.from)
              << ": a scan goes from FROM up to TO\n";
    return ExitCode::usage;
  }
  const auto client = connect(common);
  if (!client) return report(client.error());
  const std::string from = arguments.prefix.value_or(arguments.from);
  const std::string to = arguments.prefix ? prefix_end(*arguments.prefix) : arguments.to;
  std::uint64_t printed = 0;
  const auto visit = [&](const Pair& pair) {
    ReadView read;
    read.key = pair.key;
    read.value = view_of(pair);
    read.version = pair.version;
    if (common.output == OutputFormat::json) {
      std::cout << read_json(pair.key, read.value, pair.version, pair.expires_at_us) << '\n';
    } else {
      print_read(common, read);
    }
    return ++printed != arguments.limit;
  };
  ScanOptions options;
  options.reverse = arguments.reverse;
  constexpr std::uint64_t kPagePairs = 10'000;
  if (arguments.limit != 0 && arguments.limit < kPagePairs) {
    options.page_pairs = static_cast<std::uint32_t>(arguments.limit);
  }
  const auto position = (*client)->scan(from, to, visit, options);
  return position ? ExitCode::ok : report(position.error());
}

ExitCode run_parked_list(const CommonOptions& common) {
  const auto client = connect(common);
  if (!client) return report(client.error());
  const auto parked = (*client)->list_parked();
  if (!parked) return report(parked.error());
  if (common.output == OutputFormat::text) {
    std::printf("%-10s %-8s %10s %6s %6s %8s  %-24s  %s\n", "ID", "SESSION", "REQUEST", "INDEX", "GUARD", "SECONDS",
                "CLIENT", "WAITS FOR KEY");
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  for (const ParkedTransaction& p : *parked) {
    if (common.output == OutputFormat::json) {
      std::printf("%s\n", to_json(p).dump().c_str());
    } else {
      const double seconds = static_cast<double>(now_us - std::min(now_us, p.since_us)) * 1e-6;
      std::printf("%-10llu %-8s %10llu %6u %6u %8.1f  %-24s  %s\n", static_cast<unsigned long long>(p.id),
                  p.session.c_str(), static_cast<unsigned long long>(p.request), p.index, p.guard, seconds,
                  p.client.c_str(), key_text(p.guard_key).c_str());
    }
  }
  return ExitCode::ok;
}

ExitCode run_parked_cancel(const CommonOptions& common, const CancelArguments& arguments) {
  const bool of_session = arguments.parked_id == 0 && arguments.request != 0;
  std::string session;
  if (of_session) {
    if (const ExitCode code = read_session_id(arguments.session_file, &session); code != ExitCode::ok) return code;
  }
  const auto client = connect(common);
  if (!client) return report(client.error());
  const auto cancel = [&] {
    if (of_session) return (*client)->cancel(session, arguments.request, arguments.index, {}, arguments.holder);
    if (arguments.parked_id != 0) return (*client)->cancel_parked(arguments.parked_id);
    return (*client)->cancel_parked(arguments.filter);
  };
  const auto cancelled = cancel();
  if (!cancelled) return report(cancelled.error());
  if (common.output == OutputFormat::json) {
    std::cout << nlohmann::json{{"cancelled", *cancelled}}.dump() << '\n';
  } else {
    std::cout << "cancelled " << *cancelled << '\n';
  }
  return *cancelled == 0 ? ExitCode::not_done : ExitCode::ok;
}

ExitCode run_log_level(const CommonOptions& common, const std::string& level) {
  const auto client = connect(common);
  if (!client) return report(client.error());
  const bool changes = !level.empty();
  const auto answer = changes ? (*client)->set_log_level(level) : (*client)->log_level();
  if (!answer) return report(answer.error());
  if (common.output == OutputFormat::json) {
    nlohmann::json line = {{"level", changes ? level : *answer}};
    if (changes) line["level_before"] = *answer;
    std::cout << line.dump() << '\n';
  } else {
    std::cout << (changes ? level + " (before: " + *answer + ")" : *answer) << '\n';
  }
  return ExitCode::ok;
}

}  // namespace kilokv::client
