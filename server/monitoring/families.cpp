// Role: see families.hpp.
#include "server/monitoring/families.hpp"

#include <prometheus/text_serializer.h>

#include <cstdint>
#include <utility>

namespace kilokv::server {

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

std::string Families::text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace kilokv::server
