// Role: see sampler.hpp.
#include "client/bench/sampler.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::bench {
namespace {

// A server that stands still must not hold up the run, whose interrupts wait for this.
constexpr std::uint64_t kStatusUs = 500'000;

Sample joined(const Sample& a, const Sample& b) {
  Sample both = b;
  both.length_us += a.length_us;
  both.committed += a.committed;
  both.others += a.others;
  both.p50_us = std::max(a.p50_us, b.p50_us);
  both.p99_us = std::max(a.p99_us, b.p99_us);
  both.server.batches += a.server.batches;
  both.server.transactions += a.server.transactions;
  const auto weight = static_cast<double>(a.length_us) / static_cast<double>(std::max<std::int64_t>(1, both.length_us));
  const auto join = [weight](const std::optional<double>& one, const std::optional<double>& other) {
    if (!one || !other) return one ? one : other;
    return std::optional(*one * weight + *other * (1 - weight));
  };
  both.server_cpu = join(a.server_cpu, b.server_cpu);
  both.client_cpu = join(a.client_cpu, b.client_cpu);
  return both;
}

std::uint64_t counter(const client::ServerStatus& status, const char* name) {
  const auto found = status.counters.find(name);
  return found != status.counters.end() ? found->second : 0;
}

}  // namespace

double ServerBatches::mean_size() const {
  return batches == 0 ? 0 : static_cast<double>(transactions) / static_cast<double>(batches);
}

void limit_samples(std::vector<Sample>* samples) {
  if (samples->size() <= kSamplesMax) return;
  std::vector<Sample> fewer;
  for (std::size_t i = 0; i + 1 < samples->size(); i += 2) fewer.push_back(joined((*samples)[i], (*samples)[i + 1]));
  if (samples->size() % 2 == 1) fewer.push_back(samples->back());
  *samples = std::move(fewer);
}

Sampler::Sampler(client::Client* client, const ServerFound& server)
    : client_(client), found_(server), cpu_(read_cpu_times(server.pid)) {
  take_batches();
}

ServerBatches Sampler::take_batches() {
  const auto status = client_->status({.timeout_us = kStatusUs});
  if (!status) return {};
  const ServerBatches before = std::exchange(
      counters_,
      ServerBatches{.batches = counter(*status, "batches"), .transactions = counter(*status, "transactions")});
  const bool knew = std::exchange(knows_counters_, true);
  // A server that was started again counts from 0.
  if (!knew || counters_.batches < before.batches || counters_.transactions < before.transactions) return {};
  return {.batches = counters_.batches - before.batches, .transactions = counters_.transactions - before.transactions};
}

void Sampler::take(const Tally& interval, std::int64_t now_us) {
  Sample sample;
  sample.end_us = now_us - start_us_;
  sample.length_us = now_us - std::exchange(last_us_, now_us);
  sample.committed = interval.counts.of(client::Outcome::committed);
  sample.others = interval.counts.answered() - sample.committed;
  sample.p50_us = interval.latency_us.quantile(0.5);
  sample.p99_us = interval.latency_us.quantile(0.99);
  sample.server = take_batches();
  server_.batches += sample.server.batches;
  server_.transactions += sample.server.transactions;
  const CpuTimes before = std::exchange(cpu_, read_cpu_times(found_.pid));
  const CpuUse use = cpu_between(before, cpu_, found_.place, machine_cores(), own_cores());
  if (use.known) {
    sample.client_cpu = use.client_machine;
    if (use.place == ServerPlace::here) sample.server_cpu = use.server;
  }
  if (sample.length_us < kSampleLeastUs) return;
  samples_.push_back(sample);
  limit_samples(&samples_);
}

}  // namespace kilokv::bench
