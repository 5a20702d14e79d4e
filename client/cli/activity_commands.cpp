#include "client/cli/activity_commands.hpp"

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/activity_text.hpp"
#include "client/cli/output.hpp"
#include "client/cli/repeat.hpp"
#include "client/command_line/arguments.hpp"
#include "client/measure/text.hpp"
#include "kilokv/history.hpp"

namespace kilokv::client {
namespace {

using bench::grouped;
using bench::long_duration;
using bench::short_duration;
using bench::short_size;
using bench::Table;
using bench::wrapped;

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

std::string signed_duration(std::int64_t us) {
  std::string text = us < 0 ? "-" : "";
  text += long_duration(us < 0 ? -us : us);
  return text;
}

std::string or_nothing(std::uint64_t bytes) { return bytes == 0 ? "0" : short_size(bytes); }

void print_more(std::size_t shown, std::uint64_t count, const char* what) {
  if (count > shown) std::cout << "and " << grouped(count - shown) << " more " << what << " (--limit)\n";
}

void print_json(const HotKeys& hot) {
  for (const HotKeysOfUse& use : hot.uses) {
    for (const HotKey& key : use.keys) {
      nlohmann::ordered_json line = {{"use", to_string(use.use)}};
      add_key(key.key, "key", &line);
      line.update({{"per_second", key.per_second},
                   {"error", key.error},
                   {"at_least_per_second", at_least(key)},
                   {"all_per_second", use.per_second},
                   {"sampled_one_in", hot.sampled_one_in}});
      std::cout << line.dump() << '\n';
    }
  }
}

void print_text(const HotKeysOfUse& use, std::uint32_t limit) {
  std::cout << to_string(use.use) << ": " << rate_text(use.per_second) << " a second, all keys together\n";
  const std::vector<HotKey> keys = certain_keys(use, limit);
  if (!keys.empty()) {
    Table table({"AT LEAST/S", "AT MOST/S", "KEY"});
    for (const HotKey& key : keys) {
      table.row({rate_text(at_least(key)), rate_text(key.per_second), text_of(key.key)});
    }
    table.text_last();
    std::cout << table.render();
  }
  const std::size_t certain = certain_keys(use, UINT32_MAX).size();
  if (certain < use.keys.size()) {
    std::cout << "left out: " << grouped(use.keys.size() - certain) << " keys whose rates are mostly error\n";
  }
}

void print_text(const HotKeys& hot, std::uint32_t limit) {
  for (const HotKeysOfUse& use : hot.uses) {
    print_text(use, limit);
    std::cout << '\n';
  }
  std::cout << "rates of the last seconds";
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
    if (slow.guard_key.is_there()) add_key(slow.guard_key, "guard_key", &line);
  }
  return line;
}

// A block of lines for each: the times of all stages do not fit beside each other.
void print_text(const SlowTransaction& slow) {
  constexpr const char* kIndent = "    ";
  const auto duration = [](std::uint64_t us) { return short_duration(static_cast<std::int64_t>(us)); };
  std::cout << utc_text(slow.answered_us, 3) << "  " << duration(slow.total_us) << ", " << slow.reason << ", "
            << to_string(slow.outcome) << " in batch " << slow.batch << '\n';
  std::vector<std::string> who = {"from " + slow.client};
  if (!slow.session.empty()) who.push_back("session " + slow.session + ", request " + std::to_string(slow.request));
  if (slow.transactions > 1) who.push_back(grouped(slow.transactions) + " transactions");
  std::cout << wrapped(kIndent, who);
  std::vector<std::string> stages;
  for (const auto& [name, us] : {std::pair{"queued ", slow.queued_us}, std::pair{"waited ", slow.waited_us},
                                 std::pair{"execution ", slow.execution_us}, std::pair{"sync ", slow.sync_us},
                                 std::pair{"answer ", slow.answer_us}}) {
    if (us > 0) stages.push_back(name + duration(us));
  }
  if (!stages.empty()) std::cout << wrapped(kIndent, stages);
  if (slow.guard) {
    std::cout << kIndent << "waited for guard " << *slow.guard;
    if (slow.guard_key.is_there()) std::cout << " on key " << text_of(slow.guard_key);
    std::cout << '\n';
  }
  if (!slow.trace.empty()) std::cout << kIndent << "trace " << slow.trace << ", span " << slow.span << '\n';
}

void print(const SlowTransactions& slow, OutputFormat output) {
  if (output == OutputFormat::json) {
    for (const SlowTransaction& one : slow.transactions) std::cout << to_json(one).dump() << '\n';
    return;
  }
  for (const SlowTransaction& one : slow.transactions) print_text(one);
  if (slow.threshold_us == 0) {
    std::cout << "no transaction counts as slow: --slow-transaction of the server is 0\n";
    return;
  }
  const std::uint64_t all = count_of(slow);
  std::cout << (slow.transactions.empty() ? "" : "\n") << grouped(all) << (all == 1 ? " transaction" : " transactions")
            << " since the start took " << format_duration(static_cast<std::int64_t>(slow.threshold_us))
            << " or longer (--slow-transaction)" << (all == 0 ? "" : ":") << '\n';
  if (all > 0) std::cout << wrapped("    ", reasons_of(slow));
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
  if (open.sessions.empty()) {
    std::cout << "no session is open\n";
    return;
  }
  Table table(
      {"SESSION", "USER", "LEASE LEFT", "HOLDER", "ACKED TO", "KEPT", "IN FLIGHT", "UPLOADS", "STORED", "RESERVED"});
  for (const OpenSession& s : open.sessions) {
    table.row({s.id, or_dash(s.user), signed_duration(s.lease_left_us), std::to_string(s.holder),
               std::to_string(s.acknowledged_through), grouped(s.requests), grouped(s.requests_in_flight),
               grouped(s.uploads), or_nothing(s.stored_bytes), or_nothing(s.reserved_bytes)});
  }
  table.drop_empty_columns();
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
  if (open.connections.empty()) {
    std::cout << "no connection is open\n";
    return;
  }
  Table table({"PEER", "USER", "AGE", "RECEIVED", "OPEN CALLS", "UNFINISHED"});
  for (const OpenConnection& c : open.connections) {
    table.row({c.peer, or_dash(c.user), long_duration(static_cast<std::int64_t>(c.age_us)),
               or_nothing(c.received_bytes), grouped(c.open_calls), or_nothing(c.unfinished_bytes)});
  }
  table.drop_empty_columns();
  std::cout << table.render();
  print_more(open.connections.size(), open.count, "connections");
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

}  // namespace

ExitCode run_hot(const CommonOptions& common, const ActivityArguments& arguments) {
  constexpr std::uint32_t kKeys = 20;
  const auto activity = connect_activity(common);
  if (!activity) return report(activity.error());
  return show_repeatedly(common, arguments.watch, [&] {
    const bool is_text = common.output == OutputFormat::text;
    const auto hot = (*activity)->hot_keys(arguments.use, is_text ? kHotKeysMax : arguments.limit);
    if (!hot) return report(hot.error());
    if (is_text) {
      print_text(*hot, arguments.limit == 0 ? kKeys : arguments.limit);
    } else {
      print_json(*hot);
    }
    return ExitCode::ok;
  });
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

}  // namespace kilokv::client
