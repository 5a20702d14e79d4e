// Role: see families.hpp.
#include "server/monitoring/families.hpp"

#include <prometheus/text_serializer.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace kilokv::server {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter: return "counter";
    case prometheus::MetricType::Gauge: return "gauge";
    case prometheus::MetricType::Histogram: return "histogram";
    default: return "untyped";  // no family here is of another type
  }
}

Json json_of(const prometheus::ClientMetric& metric, prometheus::MetricType type) {
  Json json = {{"labels", Json::object()}};
  for (const Label& label : metric.label) json["labels"][label.name] = label.value;
  if (type != prometheus::MetricType::Histogram) {
    json["value"] = type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
    return json;
  }
  json["count"] = metric.histogram.sample_count;
  json["sum"] = metric.histogram.sample_sum;
  json["buckets"] = Json::array();
  for (const auto& bucket : metric.histogram.bucket) {
    if (std::isfinite(bucket.upper_bound)) json["buckets"].push_back({bucket.upper_bound, bucket.cumulative_count});
  }
  json["buckets"].push_back({nullptr, metric.histogram.sample_count});
  return json;
}

}  // namespace

Families::Family Families::family(const char* name, const char* help, prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  families_.push_back(std::move(family));
  return {this, families_.size() - 1};
}

prometheus::ClientMetric* Families::Family::next(Labels labels) {
  prometheus::ClientMetric* const metric = &families_->families_[index_].metric.emplace_back();
  metric->label = std::move(labels);
  return metric;
}

void Families::Family::add(double value, Labels labels) {
  prometheus::ClientMetric* const metric = next(std::move(labels));
  if (families_->families_[index_].type == prometheus::MetricType::Counter) {
    metric->counter.value = value;
  } else {
    metric->gauge.value = value;
  }
}

void Families::Family::add(const Histogram::Snapshot& values, double parts, Labels labels) {
  prometheus::ClientMetric::Histogram& histogram = next(std::move(labels))->histogram;
  histogram.sample_count = values.count;
  histogram.sample_sum = static_cast<double>(values.sum) / parts;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < values.bounds.size(); ++i) {
    count += values.counts[i];
    histogram.bucket.push_back({count, static_cast<double>(values.bounds[i]) / parts});
  }
}

std::string Families::json() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  Json families = Json::array();
  for (const prometheus::MetricFamily& family : families_) {
    Json metrics = Json::array();
    for (const prometheus::ClientMetric& metric : family.metric) metrics.push_back(json_of(metric, family.type));
    families.push_back({{"name", family.name}, {"type", name_of(family.type)}, {"metrics", std::move(metrics)}});
  }
  return Json{{"time_us", std::to_string(now_us)}, {"families", std::move(families)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

std::string Families::text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace kilokv::server
