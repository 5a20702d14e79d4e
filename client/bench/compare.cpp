// Role: see compare.hpp.
#include "client/bench/compare.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "client/bench/spread.hpp"
#include "client/measure/steady_scan.hpp"
#include "client/measure/text.hpp"

namespace kilokv::bench {
namespace {

using Json = nlohmann::json;  // two objects are equal whatever the order of their fields is
using Ordered = nlohmann::ordered_json;

constexpr std::size_t kRepeatsForSpread = 3;

// What a configuration has beside what makes a point: it changes how well the point is measured, not what it is.
constexpr std::array<const char*, 5> kNotOfAPoint = {"seed", "duration_us", "warmup_us", "give_up_after_us", "history"};

// What should be the same in both reports, beside the points: name and place in a run's report.
struct Circumstance {
  const char* name;
  const char* pointer;
};
constexpr std::array<Circumstance, 10> kCircumstances = {{{"hardware", "/hardware/cpu"},
                                                          {"cores", "/hardware/cores"},
                                                          {"commit of kilokv-bench", "/commit"},
                                                          {"version of the server", "/server/version"},
                                                          {"strategy of the server", "/server/strategy"},
                                                          {"device of the server", "/server/device"},
                                                          {"--duration in us", "/config/duration_us"},
                                                          {"--warmup in us", "/config/warmup_us"},
                                                          {"--seed", "/config/seed"},
                                                          {"--history", "/config/history"}}};

struct Metric {
  const char* name;
  const char* title;
  const char* pointer;
  bool more_is_better;
};
constexpr std::array<Metric, 4> kMetrics = {{{"committed_per_s", "committed/s", "/committed_per_s", true},
                                             {"p50_us", "p50", "/latency_us/p50", false},
                                             {"p99_us", "p99", "/latency_us/p99", false},
                                             {"p999_us", "p99.9", "/latency_us/p999", false}}};

Json value_at(const Json& run, const char* pointer) { return run.value(Json::json_pointer(pointer), Json(nullptr)); }

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

struct Point {
  Json config;
  std::vector<Json> runs;

  Summary of(const Metric& metric) const {
    std::vector<double> values;
    for (const Json& run : runs) values.push_back(value_at(run, metric.pointer).get<double>());
    return summarize(std::move(values));
  }
};

struct Report {
  std::string name;
  std::vector<Json> runs;
  std::vector<Point> points;  // in the order of their first runs

  const Point* find(const Json& config) const {
    const auto found =
        std::find_if(points.begin(), points.end(), [&](const Point& point) { return point.config == config; });
    return found != points.end() ? &*found : nullptr;
  }
};

bool is_run(const Json& json) {
  if (!json.is_object() || !value_at(json, "/config").is_object()) return false;
  return std::all_of(kMetrics.begin(), kMetrics.end(),
                     [&](const Metric& metric) { return value_at(json, metric.pointer).is_number(); });
}

client::Expected<Report> read(const ReportFile& file) {
  const auto refused = [&file] {
    return make_error(client::ErrorCode::invalid_argument,
                      file.name + " is no JSON report of kilokv-bench run, sweep or tune");
  };
  const Json json = Json::parse(file.json, nullptr, false);
  if (json.is_discarded()) return refused();
  const Json runs = json.is_array() ? json : json.is_object() && json.contains("runs") ? json["runs"] : Json{json};
  if (!runs.is_array() || runs.empty()) return refused();
  Report report;
  report.name = file.name;
  for (const Json& run : runs) {
    if (!is_run(run)) return refused();
    Json config = run["config"];
    for (const char* field : kNotOfAPoint) config.erase(field);
    report.runs.push_back(run);
    auto point = std::find_if(report.points.begin(), report.points.end(),
                              [&](const Point& known) { return known.config == config; });
    if (point == report.points.end()) point = report.points.insert(point, Point{std::move(config), {}});
    point->runs.push_back(run);
  }
  if (json.is_object()) {  // a tune makes its runs in a random order
    std::sort(report.points.begin(), report.points.end(),
              [](const Point& a, const Point& b) { return a.config < b.config; });
  }
  return report;
}

std::string values_of(const Report& report, const char* pointer) {
  std::set<std::string> values;
  for (const Json& run : report.runs) values.insert(shown(value_at(run, pointer)));
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

std::string difference(const std::string& name, const std::string& a, const std::string& b) {
  return name + " differs: A has " + a + ", B has " + b;
}

std::string problems_of(const Report& report) {
  std::set<std::string> codes;
  std::size_t bad = 0;
  for (const Json& run : report.runs) {
    const Json warnings = value_at(run, "/warnings");
    for (const Json& warning : warnings.is_array() ? warnings : Json::array()) {
      codes.insert(shown(value_at(warning, "/code")));
    }
    if (!value_at(run, "/failure").is_null() || !value_at(run, "/interrupted_by").is_null()) ++bad;
  }
  std::string text;
  for (const std::string& code : codes) text += (text.empty() ? "warnings " : ", ") + code;
  if (bad != 0) {
    text += (text.empty() ? "" : "; ") + grouped(bad) + " of " + grouped(report.runs.size()) +
            " runs failed or ended early";
  }
  return text;
}

enum class Verdict { same, better, worse };
const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::better: return "better";
    case Verdict::worse: return "worse";
  }
  return "?";
}

struct Compared {
  Summary a, b;
  std::optional<double> ratio;  // B / A; none: A is 0
  double limit = 0;
  Verdict verdict = Verdict::same;
};

Compared compare_metric(const Metric& metric, const Point& a, const Point& b, double threshold) {
  Compared compared{a.of(metric), b.of(metric), std::nullopt, threshold, Verdict::same};
  const auto widen = [&](const Point& point, const Summary& summary) {
    if (point.runs.size() >= kRepeatsForSpread) compared.limit = std::max(compared.limit, summary.spread);
  };
  widen(a, compared.a);
  widen(b, compared.b);
  const double before = compared.a.median, now = compared.b.median;
  if (before > 0) compared.ratio = now / before;
  const double larger = std::max(before, now), smaller = std::min(before, now);
  if (larger <= smaller * (1 + compared.limit)) return compared;
  compared.verdict = (now > before) == metric.more_is_better ? Verdict::better : Verdict::worse;
  return compared;
}

struct Pair {
  const Point* a;
  const Point* b;
  std::array<Compared, kMetrics.size()> metrics;

  Pair(const Point* one, const Point* other, double threshold) : a(one), b(other) {
    for (std::size_t i = 0; i < kMetrics.size(); ++i) metrics[i] = compare_metric(kMetrics[i], *a, *b, threshold);
  }
  bool has(Verdict verdict) const {
    return std::any_of(metrics.begin(), metrics.end(), [&](const Compared& one) { return one.verdict == verdict; });
  }
};

class Comparer {
 public:
  Comparer(Report a, Report b, double threshold) : a_(std::move(a)), b_(std::move(b)), threshold_(threshold) {}

  client::Expected<Comparison> compare() {
    match();
    if (pairs_.empty()) {
      return make_error(client::ErrorCode::invalid_argument,
                        a_.name + " and " + b_.name + " have no configuration in common, so nothing can be compared");
    }
    find_differences();
    return Comparison{text(), json(), count(Verdict::worse) != 0};
  }

 private:
  void match();
  void find_differences();
  std::size_t count(Verdict verdict) const {
    return static_cast<std::size_t>(
        std::count_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.has(verdict); }));
  }
  std::string label(const Json& config) const;
  std::string text() const;
  std::string json() const;

  const Report a_, b_;
  const double threshold_;
  std::vector<Pair> pairs_;
  std::vector<const Point*> only_a_, only_b_;
  std::vector<std::string> differences_;
};

void Comparer::match() {
  if (a_.points.size() == 1 && b_.points.size() == 1) {  // also of different configurations: these are told
    pairs_.emplace_back(&a_.points.front(), &b_.points.front(), threshold_);
    return;
  }
  for (const Point& point : a_.points) {
    if (const Point* other = b_.find(point.config)) {
      pairs_.emplace_back(&point, other, threshold_);
    } else {
      only_a_.push_back(&point);
    }
  }
  for (const Point& point : b_.points) {
    if (a_.find(point.config) == nullptr) only_b_.push_back(&point);
  }
}

void Comparer::find_differences() {
  const Json &a = pairs_.front().a->config, &b = pairs_.front().b->config;
  Json fields = a;
  fields.update(b);
  for (const auto& [field, value] : fields.items()) {  // the same, unless a single point stands against another one
    const Json in_a = a.value(field, Json(nullptr)), in_b = b.value(field, Json(nullptr));
    if (in_a != in_b) differences_.push_back(difference("configuration " + field, shown(in_a), shown(in_b)));
  }
  for (const Circumstance& one : kCircumstances) {
    const std::string in_a = values_of(a_, one.pointer), in_b = values_of(b_, one.pointer);
    if (in_a != in_b) differences_.push_back(difference(one.name, in_a, in_b));
  }
  for (const auto& [name, report] : {std::pair("A", &a_), std::pair("B", &b_)}) {
    if (const std::string text = problems_of(*report); !text.empty()) {
      differences_.push_back(std::string(name) + " has problems: " + text);
    }
  }
}

// The fields in which the points differ, such as "batch_size 64, connections 1"; else the workload.
std::string Comparer::label(const Json& config) const {
  std::string text;
  for (const auto& [field, value] : config.items()) {
    const auto is_other = [&, &name = field, &mine = value](const Point& point) {
      return point.config.value(name, Json(nullptr)) != mine;
    };
    if (std::any_of(a_.points.begin(), a_.points.end(), is_other) ||
        std::any_of(b_.points.begin(), b_.points.end(), is_other)) {
      text += (text.empty() ? "" : ", ") + field + " " + shown(value);
    }
  }
  return text.empty() ? shown(config.value("workload", Json("?"))) : text;
}

std::string Comparer::text() const {
  std::string text = "A  " + a_.name + "\nB  " + b_.name + "\n";
  for (const std::string& line : differences_) text += "note  " + line + "\n";
  std::vector<std::string> header = {"point", "committed/s A", "committed/s B"};
  for (const Metric& metric : kMetrics) header.push_back(std::string(metric.title) + " B/A");
  header.emplace_back("B is");
  Table table(header);
  for (const Pair& pair : pairs_) {
    std::vector<std::string> cells = {label(pair.a->config)};
    for (const Summary& summary : {pair.metrics.front().a, pair.metrics.front().b}) {
      cells.push_back(grouped(static_cast<std::uint64_t>(summary.median)));
    }
    std::string verdict;
    for (std::size_t i = 0; i < kMetrics.size(); ++i) {
      const Compared& one = pair.metrics[i];
      cells.push_back(one.ratio ? fixed(*one.ratio, 2) : "-");
      if (one.verdict == Verdict::same) continue;
      verdict += (verdict.empty() ? "" : ", ") + std::string(to_string(one.verdict)) + " in " + kMetrics[i].title;
    }
    cells.push_back(verdict.empty() ? "the same" : verdict);
    table.row(std::move(cells));
  }
  text += "\n" + table.render() + "\n";
  for (const Point* point : only_a_) text += "only in A: " + label(point->config) + "\n";
  for (const Point* point : only_b_) text += "only in B: " + label(point->config) + "\n";
  return text + "B is worse in " + grouped(count(Verdict::worse)) + " of " + grouped(pairs_.size()) +
         " points, and better in " + grouped(count(Verdict::better)) + ". Less than " + fixed(threshold_ * 100, 0) +
         "%, or less than the spread of the repeats, is no difference.\n";
}

std::string Comparer::json() const {
  Ordered json = {{"a", a_.name}, {"b", b_.name}, {"threshold", threshold_}, {"differences", differences_}};
  json["points"] = Ordered::array();
  for (const Pair& pair : pairs_) {
    Ordered point = {{"config_a", pair.a->config},
                     {"config_b", pair.b->config},
                     {"runs_a", pair.a->runs.size()},
                     {"runs_b", pair.b->runs.size()}};
    for (std::size_t i = 0; i < kMetrics.size(); ++i) {
      const Compared& one = pair.metrics[i];
      point[kMetrics[i].name] = {{"a", one.a.median},
                                 {"b", one.b.median},
                                 {"ratio", one.ratio ? Ordered(*one.ratio) : Ordered(nullptr)},
                                 {"limit", one.limit},
                                 {"verdict", to_string(one.verdict)}};
    }
    json["points"].push_back(std::move(point));
  }
  json["only_a"] = Ordered::array();
  for (const Point* point : only_a_) json["only_a"].push_back(Ordered(point->config));
  json["only_b"] = Ordered::array();
  for (const Point* point : only_b_) json["only_b"].push_back(Ordered(point->config));
  json["worse"] = count(Verdict::worse) != 0;
  return json.dump(2);
}

}  // namespace

client::Expected<Comparison> compare(const ReportFile& a, const ReportFile& b, double threshold) {
  auto first = read(a);
  if (!first) return first.error();
  auto second = read(b);
  if (!second) return second.error();
  return Comparer(std::move(*first), std::move(*second), threshold).compare();
}

}  // namespace kilokv::bench
