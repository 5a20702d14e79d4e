// What happened in each second of a run, for plots over time: answers, latency, processor time, and the server's
// batches. A long run keeps fewer samples, each of a longer time. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/bench/cpu_use.hpp"
#include "client/bench/tally.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

// The batches that the server ran in a time, for all of its clients. No batches: there were none, or the server was not
// there to tell.
struct ServerBatches {
  std::uint64_t batches = 0, transactions = 0;
  double mean_size() const;  // 0: there are no batches
};

struct Sample {
  std::int64_t end_us = 0, length_us = 0;        // the end counts from the first request
  std::uint64_t committed = 0, others = 0;       // transactions that were answered
  std::int64_t p50_us = 0, p99_us = 0;           // of those
  std::optional<double> server_cpu, client_cpu;  // shares of the machine; none: not known
  ServerBatches server;
};

inline constexpr std::size_t kSamplesMax = 1024;
inline constexpr std::int64_t kSampleLeastUs = 500'000;  // a shorter one at the end of a run says little

// Joins each two neighbours if there are more than kSamplesMax. The latencies of a pair are the larger ones.
void limit_samples(std::vector<Sample>* samples);

class Sampler {
 public:
  // Begins now. `client` outlives the sampler.
  Sampler(client::Client* client, const ServerFound& server);
  // What the drivers counted since the last call.
  void take(const Tally& interval, std::int64_t now_us);
  void start_at(std::int64_t start_us) { start_us_ = last_us_ = start_us; }  // the first request

  std::vector<Sample> samples() const { return samples_; }
  const ServerBatches& server() const { return server_; }  // from the begin to the last take()

 private:
  ServerBatches take_batches();

  client::Client* const client_;
  const ServerFound found_;
  std::int64_t start_us_ = 0, last_us_ = 0;
  CpuTimes cpu_;
  ServerBatches counters_;  // of the server, since its start
  bool knows_counters_ = false;
  ServerBatches server_;
  std::vector<Sample> samples_;
};

}  // namespace kilokv::bench
