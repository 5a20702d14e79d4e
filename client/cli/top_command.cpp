// kilokv top: the load, the memory, the disk and the most used keys. Each line fits into 80 characters where the
// numbers allow it.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/activity_commands.hpp"
#include "client/cli/activity_text.hpp"
#include "client/cli/repeat.hpp"
#include "client/measure/text.hpp"

namespace kilokv::client {
namespace {

using bench::grouped;
using bench::long_duration;
using bench::short_size;
using bench::Table;
using bench::wrapped;

// Keys from several lists, each once, with the certain rate of each use.
class KeyTable {
 public:
  explicit KeyTable(const HotKeys& hot, std::uint32_t limit) {
    for (const HotKeysOfUse& use : hot.uses) {
      const std::vector<HotKey> keys = certain_keys(use, limit);
      if (keys.empty()) continue;
      for (const HotKey& key : keys) rates_of(text_of(key.key)).emplace_back(uses_.size(), at_least(key));
      uses_.emplace_back(to_string(use.use));
    }
  }

  // Empty: no key is certain. A long key is cut, so that the line is not wrapped.
  std::string render(std::size_t width) {
    if (rows_.empty()) return {};
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const Row& a, const Row& b) { return highest_rate(a) > highest_rate(b); });
    std::vector<std::string> header;
    for (const std::string& use : uses_) header.push_back(use + "/s");
    std::size_t used = 0;  // by the columns before the keys
    for (const std::string& name : header) used += std::max<std::size_t>(name.size(), 7) + 2;
    header.emplace_back("key");
    Table table(header);
    for (const Row& row : rows_) {
      std::vector<std::string> cells(uses_.size());
      for (const auto& [use, rate] : row.second) cells[use] = rate_text(rate);
      cells.push_back(cut(row.first, width > used + kKeyLeast ? width - used : kKeyLeast));
      table.row(std::move(cells));
    }
    table.text_last();
    return table.render();
  }

 private:
  using Rates = std::vector<std::pair<std::size_t, double>>;  // by the number of the use
  using Row = std::pair<std::string, Rates>;
  static constexpr std::size_t kKeyLeast = 24;

  static double highest_rate(const Row& row) {
    double highest = 0;
    for (const auto& [use, rate] : row.second) highest = std::max(highest, rate);
    return highest;
  }
  static std::string cut(const std::string& key, std::size_t width) {
    return key.size() <= width ? key : key.substr(0, width - 3) + "...";
  }
  Rates& rates_of(const std::string& key) {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.first == key; });
    return found != rows_.end() ? found->second : rows_.emplace_back(key, Rates()).second;
  }

  std::vector<std::string> uses_;
  std::vector<Row> rows_;
};

// What changes between two looks at the server, as rates.
class Overview {
 public:
  Overview(const CommonOptions& common, std::uint32_t limit, Client* client, Activity* activity)
      : common_(common), limit_(limit == 0 ? kKeys : limit), client_(client), activity_(activity) {}

  ExitCode show() {
    const auto status = client_->status();
    if (!status) return report(status.error());
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
      const auto hot = activity_->hot_keys({}, kHotKeysMax);
      if (!hot) return report(hot.error());
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
  static constexpr std::size_t kWidth = 80;
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

  void print_json(const ServerStatus& status, double passed, const SlowTransactions& slow,
                  std::uint64_t connections) const {
    nlohmann::ordered_json line = {{"state", status.state}, {"read_only", status.read_only}, {"seconds", passed}};
    for (const char* const name : kRates) line[std::string(name) + "_per_second"] = rate(status.counters, name, passed);
    for (const char* const name : kLevels) line[name] = value(status.counters, name);
    line["connections"] = connections;
    for (const char* const name : {"executed_batch", "durable_batch", "checkpoint_batch", "memory_sum_bytes",
                                   "memory_limit_bytes", "memory_rss_bytes", "log_bytes", "disk_free_bytes"}) {
      line[name] = value(status.counters, name);
    }
    line["slow"] = count_of(slow);
    std::cout << line.dump() << '\n';
  }

  std::vector<std::string> rates(const Counters& now, double passed) const {
    std::vector<std::string> items;
    for (const char* const name : kRates) {
      const double per_second = rate(now, name, passed);
      const bool always = name == kRates[0] || name == kRates[1] || std::string_view(name) == "batches";
      if (always || per_second > 0) items.push_back(rate_text(per_second) + ' ' + name);
    }
    if (!has_before_) items.emplace_back("on average since the start");
    return items;
  }

  void print_text(const ServerStatus& status, double passed, const SlowTransactions& slow,
                  std::uint64_t connections) const {
    const Counters& now = status.counters;
    const auto count = [&](const char* name) { return grouped(value(now, name)); };
    const auto size = [&](const char* name) { return short_size(value(now, name)); };
    const auto line = [](std::string label, const std::vector<std::string>& items) {
      label.resize(13, ' ');
      std::cout << wrapped(label, items, kWidth);
    };
    std::cout << "kilokvd " << status.version << " at " << client_->options().endpoint << ", up "
              << long_duration(static_cast<std::int64_t>(status.uptime_seconds * 1e6)) << '\n';
    line("state:", {state_text(status), "strategy " + status.strategy + " on " + or_dash(status.device)});
    line("per second:", rates(now, passed));
    line("now:",
         {count("queued_transactions") + " queued", count("parked") + " parked", count("sessions") + " sessions",
          count("uploads") + " uploads", grouped(connections) + " connections", count("records") + " records"});
    line("last batch:", {count("executed_batch") + " executed", count("durable_batch") + " durable",
                         count("checkpoint_batch") + " in the checkpoint"});
    const std::string limit =
        value(now, "memory_limit_bytes") == 0 ? " of no limit" : " of " + size("memory_limit_bytes");
    line("memory:", {size("memory_sum_bytes") + limit, size("memory_rss_bytes") + " resident"});
    line("disk:", {size("log_bytes") + " of log", size("disk_free_bytes") + " free"});
    std::vector<std::string> slow_ones = reasons_of(slow);
    const std::uint64_t all = count_of(slow);
    slow_ones.insert(slow_ones.begin(),
                     grouped(all) + (all == 1 ? " transaction" : " transactions") + " since the start");
    line("slow:", slow_ones);
  }

  void print_hot(const HotKeys& hot) const {
    const std::string table = KeyTable(hot, limit_).render(kWidth);
    if (!table.empty()) std::cout << "\nmost used keys, and how often at least:\n" << table;
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

ExitCode run_top(const CommonOptions& common, const ActivityArguments& arguments) {
  const auto client = connect(common);
  if (!client) return report(client.error());
  const auto activity = connect_activity(common);
  if (!activity) return report(activity.error());
  Overview overview(common, arguments.limit, client->get(), activity->get());
  return show_repeatedly(common, arguments.watch, [&] { return overview.show(); });
}

}  // namespace kilokv::client
