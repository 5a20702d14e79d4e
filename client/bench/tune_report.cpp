// Role: see tune_report.hpp.
#include "client/bench/tune_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/bench/report.hpp"
#include "client/bench/report_json.hpp"
#include "client/bench/warnings.hpp"
#include "client/measure/text.hpp"

namespace kilokv::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) { return fixed(share * 100, 0) + "%"; }
// For a spread beside its bound: 15.2% is more than 15%.
std::string exact_percent(double share) { return fixed(share * 100, 1) + "%"; }
std::string rate(double per_s) { return grouped(static_cast<std::uint64_t>(per_s)) + " committed/s"; }
std::string duration(double microseconds) { return short_duration(static_cast<std::int64_t>(microseconds)); }

const SizeResults& at(const std::vector<SizeResults>& sizes, std::uint32_t size) {
  return *std::find_if(sizes.begin(), sizes.end(), [size](const SizeResults& one) { return one.size == size; });
}

// 64; 64 or 256; 64, 256 or 1,024.
std::string listed(const std::vector<std::uint32_t>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i != 0) text += i + 1 == sizes.size() ? " or " : ", ";
    text += grouped(sizes[i]);
  }
  return text;
}

class Adviser {
 public:
  Adviser(const TuneReport& report, std::vector<SizeResults> sizes)
      : report_(report), sizes_(std::move(sizes)), flag_(size_flag(report.options)) {}

  Advice advise() {
    if (report_.rounds < kRoundsMin) {
      say("No " + flag_ + " is recommended: " + grouped(report_.rounds) + " complete " +
          (report_.rounds == 1 ? "round" : "rounds") + ", and " + grouped(kRoundsMin) + " are needed.");
      return advice_;
    }
    advice_.choice = choose(sizes_, kGoodEnough);
    advice_.complete = advice_.choice.has_value();
    if (!advice_.choice) {
      say("No " + flag_ + " is recommended: no run committed a transaction.");
      return advice_;
    }
    if (refuse_if_busy(&advice_.choice)) return advice_;
    tell_smallest();
    if (report_.options.p99_goal_us > 0) tell_goal();
    return advice_;
  }

 private:
  void say(std::string sentence) { advice_.sentences.push_back(std::move(sentence)); }

  bool refuse_if_busy(std::optional<Choice>* choice) {
    const Choice found = **choice;
    if (!found.too_busy) return false;
    say("The machine is too busy to recommend a " + flag_ + ": the runs of " + grouped(found.widest) + " differ by " +
        exact_percent(found.spread) + ", and " + percent(kSpreadMax) + " is the most that is good enough.");
    choose_nothing(choice);
    return true;
  }

  void choose_nothing(std::optional<Choice>* choice) {
    choice->reset();
    advice_.complete = false;
  }

  void tell_others(const Choice& choice) {
    std::string text = "The runs of one size differ by up to " + exact_percent(choice.spread) + ", so another tune ";
    text += choice.others.empty() ? "should choose the same." : "may choose " + listed(choice.others) + " as well.";
    say(std::move(text));
  }

  void tell_smallest() {
    const Choice& choice = *advice_.choice;
    const double chosen = at(sizes_, choice.size).speed().median, best = at(sizes_, choice.best).speed().median;
    std::string text = "The smallest " + flag_ + " within 5% of the best is " + grouped(choice.size) + ": ";
    text += choice.size == choice.best ? rate(chosen) + ", the most of all sizes."
                                       : rate(chosen) + ", " + percent(chosen / best) + " of the " + rate(best) +
                                             " of " + grouped(choice.best) + ".";
    say(std::move(text));
    tell_others(choice);
    if (choice.size == sizes_.back().size) {
      say(grouped(choice.size) + " is the largest size that was tried. A larger one may be faster.");
    }
  }

  void tell_goal() {
    const auto goal_us = static_cast<double>(report_.options.p99_goal_us);
    advice_.under_goal = choose_within_goal(sizes_, goal_us);
    if (!advice_.under_goal) {
      const auto lowest = std::min_element(
          sizes_.begin(), sizes_.end(), [](const SizeResults& a, const SizeResults& b) { return a.p99() < b.p99(); });
      say("No " + flag_ + " meets the goal of a p99 of " + duration(goal_us) + ": the lowest p99 is " +
          duration(lowest->p99()) + ", of " + grouped(lowest->size) + ".");
      advice_.complete = false;
      return;
    }
    if (refuse_if_busy(&advice_.under_goal)) return;
    const SizeResults& chosen = at(sizes_, advice_.under_goal->size);
    say("With a p99 of at most " + duration(goal_us) + ", the best " + flag_ + " is " + grouped(chosen.size) + ": " +
        rate(chosen.speed().median) + ", and a p99 of " + duration(chosen.p99()) + " (" +
        grouped(chosen.runs_within(goal_us)) + " of " + grouped(chosen.p99_us.size()) + " runs met the goal).");
    tell_others(*advice_.under_goal);
  }

  const TuneReport& report_;
  const std::vector<SizeResults> sizes_;
  const std::string flag_;
  Advice advice_;
};

Json choice_json(const std::optional<Choice>& choice) {
  if (!choice) return nullptr;
  return {
      {"size", choice->size}, {"best_size", choice->best}, {"spread", choice->spread}, {"other_sizes", choice->others}};
}

Json sizes_json(const TuneReport& report) {
  Json json = Json::array();
  for (const SizeResults& one : results_by_size(report)) {
    const Summary speed = one.speed();
    json.push_back({{"size", one.size},
                    {"runs", one.per_s.size()},
                    {"committed_per_s", speed.median},
                    {"committed_per_s_low", speed.low},
                    {"committed_per_s_high", speed.high},
                    {"spread", speed.spread},
                    {"p99_us", one.p99()}});
  }
  return json;
}

}  // namespace

Advice advise(const TuneReport& report) { return Adviser(report, results_by_size(report)).advise(); }

std::string plan_text(const TuneOptions& options) {
  std::string list;
  for (const RunOptions& point : options.points) {
    list += (list.empty() ? "" : " ") + grouped(size_of(options, point));
  }
  const RunOptions& point = options.points.front();
  return std::string("tunes ") + size_flag(options) + ": " + list + "; " + grouped(options.rounds) + " rounds, " +
         grouped(options.rounds * options.points.size()) + " runs of " +
         seconds(point.warmup_us + point.duration_us, 1) + "; takes about " + long_duration(estimated_us(options)) +
         ", and begins no run after " + long_duration(time_limit_of(options));
}

std::string to_text(const TuneReport& report) {
  const std::vector<SizeResults> sizes = results_by_size(report);
  double best = 0;
  for (const SizeResults& one : sizes) best = std::max(best, one.speed().median);
  Table table({size_flag(report.options), "committed/s", "of the best", "spread", "p99", "runs"});
  for (const SizeResults& one : sizes) {
    const Summary speed = one.speed();
    table.row({grouped(one.size), grouped(static_cast<std::uint64_t>(speed.median)),
               best > 0 ? percent(speed.median / best) : "-", exact_percent(speed.spread), duration(one.p99()),
               grouped(one.per_s.size())});
  }
  std::string text = table.render() + "\n";
  if (report.interrupted_by != 0) text += "Ended early by signal " + std::to_string(report.interrupted_by) + ".\n";
  if (report.out_of_time) text += "Ended early: --time-limit is over.\n";
  for (const std::string& sentence : advise(report).sentences) text += sentence + "\n";
  return text + warning_lines(report.runs, "");
}

std::string json_text(const TuneReport& report) {
  const Advice advice = advise(report);
  const TuneOptions& options = report.options;
  Json json;
  json["varied"] = size_flag(options);
  json["own_server"] = !options.server.empty();
  json["rounds"] = report.rounds;
  json["rounds_wanted"] = options.rounds;
  json["sizes"] = sizes_json(report);
  json["recommended"] = choice_json(advice.choice);
  json["p99_goal_us"] = options.p99_goal_us > 0 ? Json(options.p99_goal_us) : Json(nullptr);
  json["recommended_under_goal"] = choice_json(advice.under_goal);
  json["sentences"] = advice.sentences;
  json["warnings"] = merged_warnings(report.runs);
  json["failure"] = report.failure.empty() ? Json(nullptr) : Json(report.failure);
  json["out_of_time"] = report.out_of_time;
  json["interrupted_by"] = report.interrupted_by != 0 ? Json(report.interrupted_by) : Json(nullptr);
  json["runs"] = Json::array();
  for (const RunReport& run : report.runs) {
    Json one = to_json(run);
    one["round"] = run.repeat;
    json["runs"].push_back(std::move(one));
  }
  return json.dump(2);
}

}  // namespace kilokv::bench
