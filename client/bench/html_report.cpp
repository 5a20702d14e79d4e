// Role: see html_report.hpp. The page is page/index.html, in which {{name}} stands for a file of the page, and
// {{report}} for the data.
#include "client/bench/html_report.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "client/bench/page_files.hpp"
#include "client/bench/report.hpp"
#include "client/bench/report_json.hpp"

namespace kilokv::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kStepsPerDoubling = 8;  // of the latency distribution
constexpr std::string_view kTemplate = "index.html", kData = "report";

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json sample_json(const Sample& sample) {
  return {{"end_us", sample.end_us},
          {"length_us", sample.length_us},
          {"committed", sample.committed},
          {"others", sample.others},
          {"p50_us", sample.p50_us},
          {"p99_us", sample.p99_us},
          {"server_cpu", optional_json(sample.server_cpu)},
          {"client_cpu", optional_json(sample.client_cpu)},
          {"batches", sample.server.batches},
          {"batch_transactions", sample.server.transactions}};
}

// What the plots show beside the figures of the JSON report.
Json details_json(const RunReport& report) {
  Json json;
  json["seed"] = std::to_string(report.options.workload.seed);  // a number of the page has 53 bits
  json["latency_steps_per_doubling"] = kStepsPerDoubling;
  json["latency_counts"] = Json::array();
  for (const auto& [step, count] : report.measured.latency_us.counts_by_step(kStepsPerDoubling)) {
    json["latency_counts"].push_back({step, count});
  }
  json["samples"] = Json::array();
  for (const Sample& sample : report.samples) json["samples"].push_back(sample_json(sample));
  return json;
}

// JSON that can stand in an element of HTML: without a `<`, no text of it can end the element.
std::string data_text(const std::vector<RunReport>& reports, const PageFacts& facts) {
  Json json = {{"kind", facts.is_sweep ? "sweep" : "run"}, {"command", facts.command}, {"made_at", facts.made_at}};
  json["report"] = facts.is_sweep ? Json::array() : to_json(reports.front());
  json["details"] = json["choices"] = Json::array();
  for (const RunReport& report : reports) {
    if (facts.is_sweep) json["report"].push_back(to_json(report));
    json["details"].push_back(details_json(report));
  }
  for (const SweepChoice& choice : choices_of(reports)) {
    json["choices"].push_back({{"chosen", choice.chosen}, {"best", choice.best}});
  }
  std::string text;
  // The command line may hold any bytes.
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

std::string_view content_of(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name == name) return file.content;
  }
  return {};
}

}  // namespace

std::vector<SweepChoice> choices_of(const std::vector<RunReport>& reports) {
  std::map<std::string, std::vector<std::size_t>> series;  // the other axes -> places
  std::vector<std::string> order;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (!reports[i].failure.empty() || reports[i].interrupted_by != 0) continue;
    RunOptions others = reports[i].options;
    others.batch_size = 0;
    auto& places = series[config_text(others)];
    if (places.empty()) order.push_back(config_text(others));
    places.push_back(i);
  }
  std::vector<SweepChoice> choices;
  for (const std::string& name : order) {
    std::map<std::uint32_t, SizeResults> by_size;
    for (const std::size_t place : series[name]) {
      const std::uint32_t size = reports[place].options.batch_size;
      by_size[size].size = size;
      by_size[size].per_s.push_back(committed_per_s(reports[place]));
    }
    std::vector<SizeResults> sizes;
    sizes.reserve(by_size.size());
    for (auto& [size, results] : by_size) sizes.push_back(std::move(results));
    const auto choice = sizes.size() > 1 ? choose(sizes, kGoodEnough) : std::nullopt;
    if (!choice) continue;
    const auto place_of = [&](std::uint32_t size) {
      const auto& places = series[name];
      return *std::find_if(places.begin(), places.end(),
                           [&](std::size_t place) { return reports[place].options.batch_size == size; });
    };
    choices.push_back({place_of(choice->size), place_of(choice->best)});
  }
  return choices;
}

std::string html_text(const std::vector<RunReport>& reports, const PageFacts& facts) {
  const std::string data = data_text(reports, facts);
  std::string page;
  std::string_view rest = content_of(kTemplate);
  while (true) {
    const std::size_t begin = rest.find("{{"), end = rest.find("}}", begin);
    page += rest.substr(0, begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) return page;
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    page += name == kData ? std::string_view(data) : content_of(name);
    rest.remove_prefix(end + 2);
  }
}

std::string shell_line(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  std::string line;
  for (const std::string& argument : arguments) {
    if (!line.empty()) line += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      line += argument;
      continue;
    }
    line += '\'';
    for (const char c : argument) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace kilokv::bench
