#include "client/cli/activity_commands.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "client/cli/watch.hpp"
#include "client/measure/text.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

using bench::fixed;
using bench::grouped;
using bench::short_duration;
using bench::Table;

std::string text_of(const ShownKey& key) {
  const std::string text = key.hash.empty() ? key_text(key.key) : key.hash;
  return key.is_range ? text + " (range)" : text;
}

// A key stands as in a history. A hash has a field of its own.
void add_key(const ShownKey& key, const char* field, nlohmann::ordered_json* out) {
  if (!key.hash.empty()) {
    (*out)[std::string(field) + "_hash"] = key.hash;
  } else {
    std::string text;
    append_history_key(key.key, &text);
    (*out)[field] = nlohmann::json::parse(text);
  }
  (*out)["is_range"] = key.is_range;
}

std::string rate_text(double per_second) { return fixed(per_second, per_second < 10 ? 1 : 0); }

std::string signed_duration(std::int64_t us) {
  std::string text = us < 0 ? "-" : "";
  text += short_duration(us < 0 ? -us : us);
  return text;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

// Such as 2026-01-31T12:00:00.123Z.
std::string utc_text(std::int64_t unix_us) {
  const auto seconds = static_cast<std::time_t>(unix_us / 1'000'000);
  std::tm parts{};
  char text[32] = {};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "?";
  std::string utc(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts));
  const std::string milliseconds = std::to_string(1000 + unix_us / 1000 % 1000);
  utc += '.';
  utc.append(milliseconds, 1);
  utc += 'Z';
  return utc;
}

void print_more(std::size_t shown, std::uint64_t count, const char* what) {
  if (count > shown) std::cout << "and " << grouped(count - shown) << " more " << what << " (--limit)\n";
}

void print(const HotKeys& hot, OutputFormat output) {
  if (output == OutputFormat::json) {
    for (const HotKeysOfUse& use : hot.uses) {
      for (const HotKey& key : use.keys) {
        nlohmann::ordered_json line = {{"use", to_string(use.use)}};
        add_key(key.key, "key", &line);
        line.update({{"per_second", key.per_second},
                     {"error", key.error},
                     {"all_per_second", use.per_second},
                     {"sampled_one_in", hot.sampled_one_in}});
        std::cout << line.dump() << '\n';
      }
    }
    return;
  }
  for (const HotKeysOfUse& use : hot.uses) {
    Table table({"KEY", std::string(to_string(use.use)) + "/s", "AT MOST TOO HIGH BY"});
    for (const HotKey& key : use.keys) {
      table.row({text_of(key.key), rate_text(key.per_second), key.error < 0.05 ? "" : rate_text(key.error)});
    }
    std::cout << (&use == hot.uses.data() ? "" : "\n") << table.render() << "all keys: " << rate_text(use.per_second)
              << " a second\n";
  }
  std::cout << "\nrates of the last seconds";
  if (hot.sampled_one_in > 1) std::cout << ", from one of " << grouped(hot.sampled_one_in) << " transactions";
  std::cout << '\n';
}

nlohmann::ordered_json to_json(const SlowTransaction& slow) {
  nlohmann::ordered_json line = {{"reason", slow.reason},
                                 {"answered_us", slow.answered_us},
                                 {"total_us", slow.total_us},
                                 {"queued_us", slow.queued_us},
                                 {"waited_us", slow.waited_us},
                                 {"execution_us", slow.execution_us},
                                 {"sync_us", slow.sync_us},
                                 {"answer_us", slow.answer_us},
                                 {"client", slow.client},
                                 {"session", slow.session},
                                 {"request", slow.request},
                                 {"index", slow.index},
                                 {"transactions", slow.transactions},
                                 {"outcome", to_string(slow.outcome)},
                                 {"batch", slow.batch},
                                 {"admitted_batch", slow.admitted_batch},
                                 {"batch_transactions", slow.batch_transactions},
                                 {"reads", slow.reads},
                                 {"trace", slow.trace},
                                 {"span", slow.span}};
  if (slow.guard) {
    line["guard"] = *slow.guard;
    add_key(slow.guard_key, "guard_key", &line);
  }
  return line;
}

void print(const SlowTransactions& slow, OutputFormat output) {
  if (output == OutputFormat::json) {
    for (const SlowTransaction& one : slow.transactions) std::cout << to_json(one).dump() << '\n';
    return;
  }
  const auto duration = [](std::uint64_t us) { return us == 0 ? "" : short_duration(static_cast<std::int64_t>(us)); };
  Table table({"ANSWERED", "REASON", "TOTAL", "QUEUED", "WAITED", "EXECUTION", "SYNC", "ANSWER", "OUTCOME", "BATCH",
               "CLIENT", "REQUEST", "WAITED FOR"});
  for (const SlowTransaction& one : slow.transactions) {
    const std::string session = one.session.empty() ? "" : one.session + "/" + std::to_string(one.request);
    table.row({utc_text(one.answered_us), one.reason, duration(one.total_us), duration(one.queued_us),
               duration(one.waited_us), duration(one.execution_us), duration(one.sync_us), duration(one.answer_us),
               to_string(one.outcome), std::to_string(one.batch), one.client, session,
               one.guard ? "guard " + std::to_string(*one.guard) + " on " + text_of(one.guard_key) : ""});
  }
  std::cout << table.render() << "slower than " << (slow.threshold_us == 0 ? "off" : duration(slow.threshold_us))
            << " (--slow-transaction) since the start:";
  for (const auto& [reason, count] : slow.counts) std::cout << ' ' << reason << ' ' << grouped(count);
  std::cout << '\n';
}

void print(const OpenSessions& open, OutputFormat output) {
  if (output == OutputFormat::json) {
    for (const OpenSession& s : open.sessions) {
      const nlohmann::ordered_json line = {{"id", s.id},
                                           {"user", s.user},
                                           {"lease_us", s.lease_us},
                                           {"lease_left_us", s.lease_left_us},
                                           {"holder", s.holder},
                                           {"acknowledged_through", s.acknowledged_through},
                                           {"requests", s.requests},
                                           {"requests_in_flight", s.requests_in_flight},
                                           {"uploads", s.uploads},
                                           {"stored_bytes", s.stored_bytes},
                                           {"reserved_bytes", s.reserved_bytes}};
      std::cout << line.dump() << '\n';
    }
    return;
  }
  Table table({"SESSION", "USER", "LEASE LEFT", "HOLDER", "ACKNOWLEDGED", "KEPT", "IN FLIGHT", "UPLOADS",
               "STORED BYTES", "RESERVED BYTES"});
  for (const OpenSession& s : open.sessions) {
    table.row({s.id, or_dash(s.user), signed_duration(s.lease_left_us), std::to_string(s.holder),
               std::to_string(s.acknowledged_through), grouped(s.requests), grouped(s.requests_in_flight),
               grouped(s.uploads), grouped(s.stored_bytes), grouped(s.reserved_bytes)});
  }
  std::cout << table.render();
  print_more(open.sessions.size(), open.count, "sessions");
}

void print(const OpenConnections& open, OutputFormat output) {
  if (output == OutputFormat::json) {
    for (const OpenConnection& c : open.connections) {
      const nlohmann::ordered_json line = {{"peer", c.peer},
                                           {"user", c.user},
                                           {"age_us", c.age_us},
                                           {"received_bytes", c.received_bytes},
                                           {"open_calls", c.open_calls},
                                           {"unfinished_bytes", c.unfinished_bytes}};
      std::cout << line.dump() << '\n';
    }
    return;
  }
  Table table({"PEER", "USER", "AGE", "RECEIVED BYTES", "OPEN CALLS", "UNFINISHED BYTES"});
  for (const OpenConnection& c : open.connections) {
    table.row({c.peer, or_dash(c.user), short_duration(static_cast<std::int64_t>(c.age_us)), grouped(c.received_bytes),
               grouped(c.open_calls), grouped(c.unfinished_bytes)});
  }
  std::cout << table.render();
  print_more(open.connections.size(), open.count, "connections");
}

Expected<std::unique_ptr<Activity>> connect_activity(const CommonOptions& common) {
  ClientOptions options = common.server;
  options.connect_timeout_us = common.timeout_us;
  options.request_timeout_us = common.timeout_us;
  return Activity::connect(options);
}

// `ask` asks for the list, which is then printed.
template <class Ask>
ExitCode show(const CommonOptions& common, const WatchArguments& watch, const Ask& ask) {
  const auto activity = connect_activity(common);
  if (!activity) return report(activity.error());
  return show_repeatedly(common, watch, [&] {
    const auto list = ask(activity->get());
    if (!list) return report(list.error());
    print(*list, common.output);
    return ExitCode::ok;
  });
}

// What changes between two looks at the server, as rates.
class Overview {
 public:
  Overview(const CommonOptions& common, std::uint32_t limit, Client* client, Activity* activity)
      : common_(common), limit_(limit == 0 ? kKeys : limit), client_(client), activity_(activity) {}

  ExitCode show() {
    const auto status = client_->status();
    if (!status) return report(status.error());
    const auto hot = activity_->hot_keys({}, limit_);
    if (!hot) return report(hot.error());
    const auto slow = activity_->slow(1);
    if (!slow) return report(slow.error());
    const auto connections = activity_->connections(1);
    if (!connections) return report(connections.error());
    const auto now = std::chrono::steady_clock::now();
    const double passed =
        has_before_ ? std::chrono::duration<double>(now - before_at_).count() : status->uptime_seconds;
    if (common_.output == OutputFormat::json) {
      print_json(*status, passed, *slow, connections->count);
    } else {
      print_text(*status, passed, *slow, connections->count);
      print_hot(*hot);
    }
    before_ = status->counters;
    before_at_ = now;
    has_before_ = true;
    return ExitCode::ok;
  }

 private:
  static constexpr std::uint32_t kKeys = 5;
  static constexpr const char* kRates[] = {"transactions", "committed",     "guard_failed", "wait_expired",
                                           "overflow",     "type_mismatch", "refused",      "batches"};
  static constexpr const char* kLevels[] = {"queued_transactions", "parked", "sessions", "uploads", "records"};

  using Counters = std::map<std::string, std::uint64_t>;
  static std::uint64_t value(const Counters& counters, const char* name) {
    const auto found = counters.find(name);
    return found == counters.end() ? 0 : found->second;
  }
  double rate(const Counters& now, const char* name, double seconds) const {
    const std::uint64_t before = value(before_, name), after = value(now, name);
    return seconds <= 0 || after < before ? 0 : static_cast<double>(after - before) / seconds;  // it was started again
  }
  static std::uint64_t sum(const SlowTransactions& slow) {
    std::uint64_t all = 0;
    for (const auto& [reason, count] : slow.counts) all += count;
    return all;
  }

  void print_json(const ServerStatus& status, double passed, const SlowTransactions& slow,
                  std::uint64_t connections) const {
    nlohmann::ordered_json line = {{"state", status.state}, {"seconds", passed}};
    for (const char* const name : kRates) line[std::string(name) + "_per_second"] = rate(status.counters, name, passed);
    for (const char* const name : kLevels) line[name] = value(status.counters, name);
    line["connections"] = connections;
    for (const char* const name : {"executed_batch", "durable_batch", "checkpoint_batch", "memory_sum_bytes",
                                   "memory_limit_bytes", "memory_rss_bytes", "log_bytes", "disk_free_bytes"}) {
      line[name] = value(status.counters, name);
    }
    line["slow"] = sum(slow);
    std::cout << line.dump() << '\n';
  }

  void print_text(const ServerStatus& status, double passed, const SlowTransactions& slow,
                  std::uint64_t connections) const {
    const Counters& now = status.counters;
    const auto mib = [&](const char* name) { return grouped(value(now, name) >> 20) + " MiB"; };
    std::cout << "kilokvd " << status.version << " at " << client_->options().endpoint << ": " << status.state
              << ", up " << short_duration(static_cast<std::int64_t>(status.uptime_seconds * 1e6)) << ", strategy "
              << status.strategy << " on " << or_dash(status.device) << '\n';
    std::cout << (has_before_ ? "a second:  " : "a second since the start:  ");
    for (const char* const name : kRates) {
      const double per_second = rate(now, name, passed);
      const bool always = name == kRates[0] || name == kRates[1] || std::string_view(name) == "batches";
      if (always || per_second > 0) std::cout << name << ' ' << rate_text(per_second) << "  ";
    }
    std::cout << "\nnow:       ";
    for (const char* const name : kLevels) std::cout << name << ' ' << grouped(value(now, name)) << "  ";
    std::cout << "connections " << grouped(connections) << '\n';
    std::cout << "batches:   executed " << value(now, "executed_batch") << "  durable " << value(now, "durable_batch")
              << "  checkpoint " << value(now, "checkpoint_batch") << '\n';
    std::cout << "memory:    " << mib("memory_sum_bytes") << " of " << mib("memory_limit_bytes") << ", resident "
              << mib("memory_rss_bytes") << '\n';
    std::cout << "disk:      log " << mib("log_bytes") << ", free " << mib("disk_free_bytes") << '\n';
    std::cout << "slow:      " << grouped(sum(slow)) << " transactions since the start";
    for (const auto& [reason, count] : slow.counts) {
      if (count > 0) std::cout << "  " << reason << ' ' << grouped(count);
    }
    std::cout << '\n';
  }

  // The uses beside each other: the first of each, then the second, and so on.
  static void print_hot(const HotKeys& hot) {
    std::size_t rows = 0;
    std::vector<std::string> header;
    for (const HotKeysOfUse& use : hot.uses) {
      rows = std::max(rows, use.keys.size());
      header.push_back(header.empty() ? "MOST USED: " + std::string(to_string(use.use)) : to_string(use.use));
      header.emplace_back("/s");
    }
    if (rows == 0) return;
    Table table(header);
    for (std::size_t i = 0; i < rows; ++i) {
      std::vector<std::string> row;
      for (const HotKeysOfUse& use : hot.uses) {
        const bool has = i < use.keys.size();
        row.push_back(has ? text_of(use.keys[i].key) : "");
        row.push_back(has ? rate_text(use.keys[i].per_second) : "");
      }
      table.row(row);
    }
    std::cout << '\n' << table.render();
  }

  const CommonOptions& common_;
  const std::uint32_t limit_;
  Client* const client_;
  Activity* const activity_;
  Counters before_;
  std::chrono::steady_clock::time_point before_at_;
  bool has_before_ = false;
};

}  // namespace

ExitCode run_hot(const CommonOptions& common, const ActivityArguments& arguments) {
  return show(common, arguments.watch,
              [&](Activity* activity) { return activity->hot_keys(arguments.use, arguments.limit); });
}

ExitCode run_slow(const CommonOptions& common, const ActivityArguments& arguments) {
  return show(common, arguments.watch, [&](Activity* activity) { return activity->slow(arguments.limit); });
}

ExitCode run_sessions(const CommonOptions& common, const ActivityArguments& arguments) {
  return show(common, arguments.watch, [&](Activity* activity) { return activity->sessions(arguments.limit); });
}

ExitCode run_connections(const CommonOptions& common, const ActivityArguments& arguments) {
  return show(common, arguments.watch, [&](Activity* activity) { return activity->connections(arguments.limit); });
}

ExitCode run_top(const CommonOptions& common, const ActivityArguments& arguments) {
  const auto client = connect(common);
  if (!client) return report(client.error());
  const auto activity = connect_activity(common);
  if (!activity) return report(activity.error());
  Overview overview(common, arguments.limit, client->get(), activity->get());
  return show_repeatedly(common, arguments.watch, [&] { return overview.show(); });
}

}  // namespace kilokv::client
