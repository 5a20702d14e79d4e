// The metrics of one scrape, in the form of Prometheus. A family is one name with its help, its type, and one value for
// each set of labels. Thread safety: one user at a time.
#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <string>
#include <vector>

#include "server/core/histogram.hpp"

namespace kilokv::server {

using Label = prometheus::ClientMetric::Label;
using Labels = std::vector<Label>;

class Families {
 public:
  // Adds values to a family. It is valid as long as the families.
  class Family {
   public:
    void add(double value, Labels labels = {});
    // `parts`: so many parts of the histogram's unit are one of the family's unit: 1e6 for microseconds.
    void add(const Histogram::Snapshot& values, double parts, Labels labels = {});

   private:
    friend class Families;
    Family(Families* families, std::size_t index) : families_(families), index_(index) {}
    prometheus::ClientMetric* next(Labels labels);
    Families* families_;
    std::size_t index_;
  };

  // The help ends with the unit, and without a point. The names follow Prometheus' conventions: base units, and _total
  // for what only grows.
  Family counter(const char* name, const char* help) { return family(name, help, prometheus::MetricType::Counter); }
  Family gauge(const char* name, const char* help) { return family(name, help, prometheus::MetricType::Gauge); }
  Family histogram(const char* name, const char* help) { return family(name, help, prometheus::MetricType::Histogram); }

  // The text that a scrape gets, in version 0.0.4 of the format.
  std::string text() const;
  // {"time_us": "...", "families": [{"name", "type", "metrics": [...]}]}. A metric has "labels", and "value". A
  // histogram has "count", "sum" and "buckets" instead: pairs of an upper bound (null: none) and how many values are at
  // most it.
  std::string json() const;

 private:
  Family family(const char* name, const char* help, prometheus::MetricType type);
  std::vector<prometheus::MetricFamily> families_;
};

inline constexpr double kMicrosecondsInASecond = 1e6;

}  // namespace kilokv::server
