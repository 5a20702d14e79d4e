// Measures designs of the record table against each other (variants.hpp).
//
// In each round every variant does the same work, one after the other. The figures are medians of the rounds: processor
// time of the thread, with wall time behind it, and the median of the ratios to the first variant.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/bench/stopwatch.hpp"
#include "tests/bench/table_variants/variants.hpp"
#include "tests/bench/table_variants/verify.hpp"

namespace kilokv::bench {
namespace {

using engine::bench::Stopwatch;

constexpr std::size_t kBatchIds = 8192;
constexpr std::size_t kBatches = 64;  // of one measurement
constexpr std::size_t kPrefetchAhead = 16;
constexpr std::uint64_t kFirstWord = 1000000;
constexpr std::uint32_t kSliceRows = 65536;
// A prime. The oldest records are erased first, and they should not lie side by side in memory.
constexpr std::uint64_t kFillStride = 7368787;

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15;
    return mix(state_) % bound;
  }

 private:
  std::uint64_t state_;
};

struct Cost {
  double processor = 0;  // ns for one operation, or another figure
  double wall = 0;
  double ratio = 0;  // to the processor time of the first variant in the same round
};

Cost cost_of(const Stopwatch& watch, std::size_t operations) {
  return {watch.processor_seconds() * 1e9 / static_cast<double>(operations),
          watch.seconds() * 1e9 / static_cast<double>(operations)};
}

std::size_t status_kib(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::strtoull(line.c_str() + std::strlen(field), nullptr, 10);
  }
  return 0;
}
double resident_bytes() { return static_cast<double>(status_kib("VmRSS:")) * 1024; }
double peak_bytes() { return static_cast<double>(status_kib("VmHWM:")) * 1024; }
void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

struct Growth {
  Cost populate;      // ns for all memory that the moves need
  Cost total;         // ns of one record
  Cost longest;       // ns of one call
  Cost find_halfway;  // ns of one id
  double peak = 0;    // bytes above those before
};

class Variant {
 public:
  virtual ~Variant() = default;
  virtual const char* name() const = 0;
  virtual Cost fill(std::size_t records) = 0;
  virtual Cost find(Random random) = 0;
  virtual Cost find_absent(Random random) = 0;
  // hinted: the places are looked up before, and only checked.
  virtual Cost bank(Random random, bool hinted) = 0;
  virtual Cost check_hints(Random random) = 0;
  virtual Cost erase(std::size_t count, bool sorted) = 0;
  virtual Cost insert(std::size_t count, bool sorted) = 0;
  // Looks up what check_old_hints() will check.
  virtual void take_hints(Random random, std::size_t not_of_oldest) = 0;
  virtual Cost check_old_hints(double* wrong) = 0;
  virtual Cost churn(std::size_t count) = 0;
  virtual Growth grow(Random random) = 0;
  // Inserts in batches. Returns the cost of one insert, and of the longest batch.
  virtual std::pair<Cost, Cost> insert_batches(std::size_t count) = 0;
  virtual void check_sum() = 0;
  virtual double load() const = 0;
};

template <class Table>
class Measured : public Variant {
 public:
  Measured(std::uint64_t seed, std::size_t records, std::size_t records_max)
      : seed_(seed), table_(records, records_max) {}

  const char* name() const override { return Table::kName; }

  Cost fill(std::size_t records) override {
    end_ = records;
    const Stopwatch watch;
    for (std::size_t i = 0; i < records; ++i) insert_one(id(i * kFillStride % records));
    return cost_of(watch, records);
  }

  Cost find(Random random) override {
    const std::vector<KeyId> ids = present(&random, 0);
    return time_finds(ids, true);
  }

  Cost find_absent(Random random) override {
    std::vector<KeyId> ids(kBatches * kBatchIds);
    for (KeyId& each : ids) each = id((std::uint64_t{1} << 40) + random.below(std::uint64_t{1} << 40));
    return time_finds(ids, false);
  }

  // As the engine does: looks up all keys of a batch, and then runs its transfers in order.
  Cost bank(Random random, bool hinted) override {
    const std::vector<KeyId> ids = present(&random, 0);
    std::vector<std::uint64_t> amounts(ids.size() / 2);
    for (std::uint64_t& amount : amounts) amount = 1 + random.below(100);
    std::vector<std::uint32_t> hints(ids.size());
    if (hinted) KILOKV_CHECK(table_.find_all(ids, hints.data()));
    const Stopwatch watch;
    for (std::size_t begin = 0; begin < ids.size(); begin += kBatchIds) {
      std::uint32_t* const places = hints.data() + begin;
      if (hinted) {
        KILOKV_CHECK(correct(ids.data() + begin, places) == 0);
      } else {
        KILOKV_CHECK(table_.find_all({ids.data() + begin, kBatchIds}, places));
      }
      run_batch(places, amounts.data() + begin / 2);
    }
    return cost_of(watch, ids.size() / 2);
  }

  Cost check_hints(Random random) override {
    take_hints(random, 0);
    double wrong = 0;
    const Cost cost = check_old_hints(&wrong);
    KILOKV_CHECK(wrong == 0);
    return cost;
  }

  Cost erase(std::size_t count, bool sorted) override {
    const std::vector<KeyId> ids = range(begin_, count, sorted);
    begin_ += count;
    const Stopwatch watch;
    for (const KeyId& each : ids) erase_one(each);
    return cost_of(watch, count);
  }

  Cost insert(std::size_t count, bool sorted) override {
    const std::vector<KeyId> ids = range(end_, count, sorted);
    end_ += count;
    const Stopwatch watch;
    for (const KeyId& each : ids) insert_one(each);
    return cost_of(watch, count);
  }

  void take_hints(Random random, std::size_t not_of_oldest) override {
    hinted_ = present(&random, not_of_oldest);
    hints_.resize(hinted_.size());
    KILOKV_CHECK(table_.find_all(hinted_, hints_.data()));
  }

  Cost check_old_hints(double* wrong) override {
    std::size_t missed = 0;
    const Stopwatch watch;
    for (std::size_t begin = 0; begin < hinted_.size(); begin += kBatchIds) {
      missed += correct(hinted_.data() + begin, hints_.data() + begin);
    }
    const Cost cost = cost_of(watch, hinted_.size());
    *wrong = static_cast<double>(missed) / static_cast<double>(hinted_.size());
    for (std::size_t i = 0; i < hinted_.size(); ++i) KILOKV_CHECK(table_[hints_[i]].id == hinted_[i]);
    return cost;
  }

  Cost churn(std::size_t count) override {
    const Stopwatch watch;
    for (std::size_t i = 0; i < count; ++i) {
      erase_one(id(begin_++));
      insert_one(id(end_++));
    }
    return cost_of(watch, count);
  }

  Growth grow(Random random) override {
    Growth growth;
    const double before = resident_bytes();
    forget_peak();
    if constexpr (Table::kSliced) {
      const Stopwatch populates;
      table_.populate_growth();
      growth.populate = cost_of(populates, 1);
      table_.start_growth();
      const std::uint32_t half = table_.not_moved() / 2;
      const auto move = [&](std::uint32_t until) {
        while (table_.not_moved() > until) {
          const Stopwatch watch;
          table_.move_some(kSliceRows);
          const Cost cost = cost_of(watch, 1);
          growth.total.processor += cost.processor;
          growth.total.wall += cost.wall;
          growth.longest.processor = std::max(growth.longest.processor, cost.processor);
          growth.longest.wall = std::max(growth.longest.wall, cost.wall);
        }
      };
      move(half);
      growth.find_halfway = find(random);
      move(0);
    } else {
      const Stopwatch watch;
      insert_one(id(end_++));
      growth.total = growth.longest = cost_of(watch, 1);
      erase_one(id(begin_++));
    }
    growth.peak = peak_bytes() - before;
    growth.total.processor /= static_cast<double>(table_.size());
    growth.total.wall /= static_cast<double>(table_.size());
    return growth;
  }

  std::pair<Cost, Cost> insert_batches(std::size_t count) override {
    Cost total, longest;
    for (std::size_t done = 0; done < count; done += kBatchIds) {
      const std::vector<KeyId> ids = range(end_, kBatchIds, false);
      end_ += kBatchIds;
      const Stopwatch watch;
      for (const KeyId& each : ids) insert_one(each);
      const Cost cost = cost_of(watch, 1);
      total.processor += cost.processor;
      total.wall += cost.wall;
      longest.processor = std::max(longest.processor, cost.processor);
      longest.wall = std::max(longest.wall, cost.wall);
    }
    total.processor /= static_cast<double>(end_ - begin_);
    total.wall /= static_cast<double>(end_ - begin_);
    return {total, longest};
  }

  void check_sum() override {
    std::uint64_t sum = 0, count = 0;
    table_.for_each([&](const Slot& slot) {
      sum += slot.cell.word;
      ++count;
    });
    KILOKV_CHECK(count == end_ - begin_ && count == table_.size() && sum == sum_);
  }

  double load() const override { return static_cast<double>(table_.size()) / table_.capacity(); }

 private:
  KeyId id(std::uint64_t i) const { return {mix(seed_ + 2 * i) | 1, mix(~seed_ + 2 * i + 1)}; }

  void insert_one(KeyId each) {
    table_[table_.insert(each, 0)].cell = {kFirstWord, make_tag(1, ValueType::integer)};
    sum_ += kFirstWord;
  }
  void erase_one(KeyId each) {
    const std::uint32_t place = table_.find(each);
    sum_ -= table_[place].cell.word;
    table_.erase(place);
  }

  // Checks the hints of a batch, and looks up the ids of those that are wrong. Returns how many are wrong.
  std::size_t correct(const KeyId* ids, std::uint32_t* hints) {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < kBatchIds; ++i) {
      if (i + kPrefetchAhead < kBatchIds) table_.prefetch(hints[i + kPrefetchAhead]);
      const KeyId held = table_[hints[i]].id;
      missed_[count] = i;
      count += static_cast<std::size_t>((held.low != ids[i].low) | (held.high != ids[i].high));
    }
    for (std::size_t i = 0; i < count; ++i) missed_ids_[i] = ids[missed_[i]];
    KILOKV_CHECK(table_.find_all({missed_ids_.data(), count}, found_.data()));
    for (std::size_t i = 0; i < count; ++i) hints[missed_[i]] = found_[i];
    return count;
  }

  void run_batch(const std::uint32_t* places, const std::uint64_t* amounts) {
    for (std::size_t i = 0; i < kBatchIds; i += 2, ++version_) {
      if (i + 2 * kPrefetchAhead < kBatchIds) {
        table_.prefetch(places[i + 2 * kPrefetchAhead]);
        table_.prefetch(places[i + 2 * kPrefetchAhead + 1]);
      }
      Cell& source = table_[places[i]].cell;
      if (source.word < amounts[i / 2]) continue;
      source = {source.word - amounts[i / 2], make_tag(version_, ValueType::integer)};
      Cell& target = table_[places[i + 1]].cell;
      target = {target.word + amounts[i / 2], make_tag(version_, ValueType::integer)};
    }
  }

  // Ids of random records that are there.
  std::vector<KeyId> present(Random* random, std::size_t not_of_oldest) const {
    std::vector<KeyId> ids(kBatches * kBatchIds);
    for (KeyId& each : ids) each = id(begin_ + not_of_oldest + random->below(end_ - begin_ - not_of_oldest));
    return ids;
  }
  std::vector<KeyId> range(std::uint64_t begin, std::size_t count, bool sorted) const {
    std::vector<KeyId> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = id(begin + i);
    if (sorted) std::sort(ids.begin(), ids.end(), [](const KeyId& a, const KeyId& b) { return a.high < b.high; });
    return ids;
  }

  Cost time_finds(const std::vector<KeyId>& ids, bool expected) {
    std::vector<std::uint32_t> places(kBatchIds);
    const Stopwatch watch;
    for (std::size_t begin = 0; begin < ids.size(); begin += kBatchIds) {
      KILOKV_CHECK(table_.find_all({ids.data() + begin, kBatchIds}, places.data()) == expected);
    }
    return cost_of(watch, ids.size());
  }

  const std::uint64_t seed_;
  Table table_;
  std::uint64_t begin_ = 0, end_ = 0;  // the records that are there
  std::uint64_t sum_ = 0;              // of the words
  Version version_ = 2;
  std::vector<KeyId> hinted_;
  std::vector<std::uint32_t> hints_;
  // Of correct().
  std::vector<std::uint32_t> missed_ = std::vector<std::uint32_t>(kBatchIds);
  std::vector<std::uint32_t> found_ = std::vector<std::uint32_t>(kBatchIds);
  std::vector<KeyId> missed_ids_ = std::vector<KeyId>(kBatchIds);
};

struct Options {
  std::vector<std::size_t> records = {100000, 2500000, 10000000};
  std::vector<std::string> variants = {"today", "shift", "numbers80", "numbers60", "marks"};
  std::size_t rounds = 9;
  double churn = 1;  // times the records
  std::uint64_t seed = 1;
};

// One size.
class Comparison {
 public:
  Comparison(const Options& options, std::size_t records) : options_(options), records_(records) {
    for (const std::string& name : options.variants) {
      add<TodayTable>(name);
      add<ShiftTable>(name);
      add<NumberTable<80>>(name);
      add<NumberTable<60>>(name);
      add<MarkTable>(name);
    }
    KILOKV_CHECK(variants_.size() == options.variants.size());
  }

  void run() {
    std::printf("\n%zu records\n%-32s", records_, "");
    for (const auto& variant : variants_) std::printf(" | %-25s", variant->name());
    std::printf("\n");

    std::vector<Cost> costs, memory;
    for (const auto& variant : variants_) {
      const double before = resident_bytes();
      costs.push_back(variant->fill(records_));
      memory.push_back({(resident_bytes() - before) / static_cast<double>(records_)});
    }
    print("fill, ns", costs);
    print("memory, bytes/record", memory);
    reads("high");
    replacements("high");

    costs.clear();
    const auto pairs = static_cast<std::size_t>(options_.churn * static_cast<double>(records_));
    for (const auto& variant : variants_) costs.push_back(variant->churn(pairs));
    print("churn: erase + insert, ns", costs);
    each_round("find after churn, ns", [](Variant* v, Random random) { return v->find(random); });

    growth();
    reads("low");
    replacements("low");

    std::vector<Cost> longest;
    costs.clear();
    for (const auto& variant : variants_) {
      const auto [total, batch] = variant->insert_batches(records_ * 2 / 5);
      costs.push_back(total);
      longest.push_back({batch.processor * 1e-6, batch.wall * 1e-6});
    }
    print("40% more: insert, ns/record", costs);
    print("40% more: longest batch, ms", longest);
    for (const auto& variant : variants_) variant->check_sum();
  }

 private:
  template <class Table>
  void add(const std::string& name) {
    if (name != Table::kName) return;
    const std::size_t records_max = records_ * 3 / 2 + 2 * kBatchIds;
    variants_.push_back(std::make_unique<Measured<Table>>(options_.seed, records_, records_max));
  }

  Random random(std::size_t round) const { return Random(options_.seed + 1000 * round); }

  void print(const std::string& what, const std::vector<Cost>& costs) const {
    std::printf("%-32s", what.c_str());
    for (const Cost& cost : costs) {
      std::printf(" | %8.2f (%8.2f)", cost.processor, cost.wall);
      if (cost.ratio != 0) {
        std::printf(" %5.2f", cost.ratio);
      } else {
        std::printf("      ");
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  // Measures measure(variant, random) in rounds, and prints the medians.
  template <class F>
  void each_round(const std::string& what, const F& measure) {
    std::vector<std::vector<Cost>> rounds(variants_.size());
    for (std::size_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t v = 0; v < variants_.size(); ++v) {
        Cost cost = measure(variants_[v].get(), random(round));
        cost.ratio = v == 0 ? 1 : cost.processor / rounds[0][round].processor;
        rounds[v].push_back(cost);
      }
    }
    std::vector<Cost> medians;
    for (std::vector<Cost>& of : rounds) medians.push_back(median(&of));
    print(what, medians);
  }
  static Cost median(std::vector<Cost>* of) {
    Cost cost;
    for (double Cost::*const figure : {&Cost::processor, &Cost::wall, &Cost::ratio}) {
      const auto middle = of->begin() + static_cast<std::ptrdiff_t>(of->size() / 2);
      std::nth_element(of->begin(), middle, of->end(),
                       [figure](const Cost& a, const Cost& b) { return a.*figure < b.*figure; });
      cost.*figure = (*middle).*figure;
    }
    return cost;
  }

  void reads(const std::string& load) {
    std::vector<Cost> loads;
    for (const auto& variant : variants_) loads.push_back({variant->load()});
    print(load + " load", loads);
    each_round(load + ": find, ns", [](Variant* v, Random random) { return v->find(random); });
    each_round(load + ": find absent, ns", [](Variant* v, Random random) { return v->find_absent(random); });
    each_round(load + ": bank, ns", [](Variant* v, Random random) { return v->bank(random, false); });
    each_round(load + ": bank from hints, ns", [](Variant* v, Random random) { return v->bank(random, true); });
    each_round(load + ": check hints, ns", [](Variant* v, Random random) { return v->check_hints(random); });
  }

  // Replaces 1% of the records, twice in each round: in random order, and sorted by home.
  void replacements(const std::string& load) {
    const std::size_t count = records_ / 100;
    std::vector<std::vector<std::vector<Cost>>> rounds(6, std::vector<std::vector<Cost>>(variants_.size()));
    for (std::size_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t v = 0; v < variants_.size(); ++v) {
        Variant& variant = *variants_[v];
        variant.take_hints(random(round), count);
        rounds[0][v].push_back(variant.erase(count, false));
        rounds[1][v].push_back(variant.insert(count, false));
        double wrong = 0;
        rounds[2][v].push_back(variant.check_old_hints(&wrong));
        rounds[3][v].push_back({wrong * 100});
        rounds[4][v].push_back(variant.erase(count, true));
        rounds[5][v].push_back(variant.insert(count, true));
      }
    }
    const char* const names[] = {": find + erase, ns",        ": insert, ns",
                                 ": check old hints, ns",     ": wrong hints, %",
                                 ": find + erase sorted, ns", ": insert sorted, ns"};
    for (std::size_t m = 0; m < rounds.size(); ++m) {
      std::vector<Cost> medians;
      for (std::vector<Cost>& of : rounds[m]) medians.push_back(median(&of));
      print(load + names[m], medians);
    }
  }

  void growth() {
    std::vector<Cost> populates, totals, longest, halfway, peaks, memory;
    for (const auto& variant : variants_) {
      const double before = resident_bytes();
      const Growth growth = variant->grow(random(0));
      const double after = resident_bytes();
      populates.push_back({growth.populate.processor * 1e-6, growth.populate.wall * 1e-6});
      totals.push_back(growth.total);
      longest.push_back({growth.longest.processor * 1e-6, growth.longest.wall * 1e-6});
      halfway.push_back(growth.find_halfway);
      peaks.push_back({growth.peak / static_cast<double>(records_)});
      memory.push_back({(after - before) / static_cast<double>(records_)});
    }
    print("growth: memory for it, ms", populates);
    print("growth: total, ns/record", totals);
    print("growth: longest call, ms", longest);
    print("growth: find halfway, ns", halfway);
    print("growth: peak, bytes/record more", peaks);
    print("growth: then, bytes/record more", memory);
  }

  const Options options_;
  const std::size_t records_;
  std::vector<std::unique_ptr<Variant>> variants_;
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int run(int argc, char** argv) {
  Options options;
  bool verifies = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--verify") {
      verifies = true;
    } else if (flag == "--records" && i + 1 < argc) {
      options.records.clear();
      for (const std::string& part : split(argv[++i]))
        options.records.push_back(std::strtoull(part.c_str(), nullptr, 10));
    } else if (flag == "--variants" && i + 1 < argc) {
      options.variants = split(argv[++i]);
    } else if (flag == "--rounds" && i + 1 < argc) {
      options.rounds = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--churn" && i + 1 < argc) {
      options.churn = std::strtod(argv[++i], nullptr);
    } else if (flag == "--seed" && i + 1 < argc) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(
          stderr,
          "usage: table_variants [--verify] [--records N,N] [--variants today,shift,numbers80,numbers60,marks] "
          "[--rounds N] [--churn TIMES] [--seed N]\n");
      return 2;
    }
  }
  std::printf("seed %llu, %zu rounds\n", static_cast<unsigned long long>(options.seed), options.rounds);
  if (verifies) {
    verify<TodayTable>(options.seed);
    verify<ShiftTable>(options.seed);
    verify<NumberTable<80>>(options.seed);
    verify<NumberTable<60>>(options.seed);
    verify<MarkTable>(options.seed);
    return 0;
  }
  std::printf("processor time (wall time), ratio to the first\n");
  for (const std::size_t records : options.records) Comparison(options, records).run();
  return 0;
}

}  // namespace
}  // namespace kilokv::bench

int main(int argc, char** argv) { return kilokv::bench::run(argc, argv); }
