// Measures what it costs to create keys. A batch of PUTs that create keys runs, and then a batch of as many PUTs to
// keys that exist. The cost is the difference, for each key. The median over many such pairs is printed, with the
// quartiles.
//
// The table has room for all records from the start, so its growth is not in the numbers, unless --grows is given. At
// the end, a scan must give all keys in order, and the hash of the state must be that of the records.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/engine.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::bench {
namespace {

using engine::Column;
using engine::Operand;
using engine::OpKind;

constexpr std::size_t kBatch = 8192;

struct Options {
  std::size_t records = 1'000'000;
  std::size_t pairs = 61;
  bool in_order = false, long_keys = false, grows = false;
  std::uint64_t seed = 1;
};

struct Times {
  double processor = 0, wall = 0;  // ns
};

Times now() {
  timespec processor{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &processor);
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {static_cast<double>(processor.tv_sec) * 1e9 + static_cast<double>(processor.tv_nsec),
          std::chrono::duration<double, std::nano>(wall).count()};
}

// A bijection, so that different numbers give different keys.
std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
  return number ^ (number >> 31);
}

std::string quartiles(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](std::size_t quarter) { return values[(values.size() - 1) * quarter / 4]; };
  char text[64];
  std::snprintf(text, sizeof(text), "%7.1f (%.1f to %.1f)", at(2), at(1), at(3));
  return text;
}

class KeyCreation {
 public:
  explicit KeyCreation(const Options& options)
      : options_(options),
        engine_(std::move(*engine::Engine::create(
            {.strategy = "serial",
             .secret = kSecret,
             .expected_records = options.grows ? 0 : options.records + (options.pairs + 1) * kBatch}))),
        random_(options.seed) {}

  void run() {
    while (created_ < options_.records) create();
    std::vector<double> create_ns, write_ns, cost_ns, wall_ns;
    for (std::size_t pair = 0; pair < options_.pairs; ++pair) {
      const Times created = create(), written = write();
      create_ns.push_back(created.processor);
      write_ns.push_back(written.processor);
      cost_ns.push_back(created.processor - written.processor);
      wall_ns.push_back(created.wall - written.wall);
    }
    verify();
    const double records = static_cast<double>(engine_->memory().records);
    std::printf("%9zu records, %s keys of %zu bytes:\n", options_.records, options_.in_order ? "in order," : "random,",
                key_of(0).size());
    std::printf("  ns for each key: created %s  written %s\n", quartiles(create_ns).c_str(),
                quartiles(write_ns).c_str());
    std::printf("  cost of a new key: %s, by wall time %s\n", quartiles(cost_ns).c_str(), quartiles(wall_ns).c_str());
    std::printf("  memory: %.2f bytes a record, %.2f of them for the order of the keys\n",
                static_cast<double>(engine_->memory().sum()) / records,
                static_cast<double>(engine_->memory().index_bytes) / records);
  }

 private:
  static constexpr engine::KeyHashSecret kSecret{0x0123456789abcdefu, 0xfedcba9876543210u};

  std::string key_of(std::uint64_t number) const {
    char key[64];
    std::snprintf(key, sizeof(key), options_.in_order ? "%s%016llu" : "%s%016llx",
                  options_.long_keys ? "tenant-0042/orders/item/" : "",
                  static_cast<unsigned long long>(options_.in_order ? number : mixed(number)));
    return key;
  }

  void put(std::uint64_t number) {
    builder_.begin();
    builder_.op(OpKind::put, builder_.key(key_of(number)), Operand::integer, static_cast<std::int64_t>(number));
    builder_.end();
  }
  Times create() {
    for (std::size_t i = 0; i < kBatch; ++i) put(created_++);
    return execute();
  }
  Times write() {
    const std::uint64_t begin = random_.below(created_ - kBatch);
    for (std::size_t i = 0; i < kBatch; ++i) put(options_.in_order ? begin + i : random_.below(created_));
    return execute();
  }

  // Returns the time for each transaction.
  Times execute() {
    const Column<std::uint8_t> expires(columns_.size());
    const Times begin = now();
    const Status status = engine_->execute(header_, columns_, expires, &results_, &writes_);
    const Times end = now();
    KILOKV_CHECK(status.ok());
    engine_->release_through(header_.number++);
    header_.first_version = results_.next_version;
    columns_.clear();
    return {(end.processor - begin.processor) / double{kBatch}, (end.wall - begin.wall) / double{kBatch}};
  }

  void verify() const {
    std::uint64_t expected = 0, seen = 0, keys = 0;
    for (std::uint64_t number = 0; number < created_; ++number) {
      const KeyId id = engine::hash_key(key_of(number), kSecret);
      expected += id.low ^ id.high;
    }
    std::string last;
    engine_->scan("", "", [&](const engine::RecordView& record) {
      KILOKV_CHECK(last < record.key);
      last = record.key;
      const KeyId id = engine::hash_key(record.key, kSecret);
      seen += id.low ^ id.high;
      ++keys;
      return true;
    });
    KILOKV_CHECK(keys == created_ && seen == expected);
    KILOKV_CHECK(engine_->state_hash() == engine_->compute_state_hash());
  }

  const Options options_;
  std::unique_ptr<engine::Engine> engine_;
  engine::Random random_;
  engine::TransactionColumns columns_;
  engine::ColumnsBuilder builder_{&columns_, kSecret};
  engine::BatchResults results_;
  engine::WriteColumns writes_;
  engine::BatchHeader header_{1, 1'000'000, 2};
  std::uint64_t created_ = 0;
};

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--in-order") {
      options.in_order = true;
    } else if (flag == "--long-keys") {
      options.long_keys = true;
    } else if (flag == "--grows") {
      options.grows = true;
    } else if (flag == "--records" && i + 1 < argc) {
      options.records = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--pairs" && i + 1 < argc) {
      options.pairs = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--seed" && i + 1 < argc) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr,
                   "usage: key_creation [--records N] [--in-order] [--long-keys] [--grows] [--pairs N] [--seed N]\n");
      return 2;
    }
  }
  KeyCreation(options).run();
  return 0;
}

}  // namespace
}  // namespace kilokv::bench

int main(int argc, char** argv) { return kilokv::bench::run(argc, argv); }
