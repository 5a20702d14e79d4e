// An engine with short forms for the content of a batch and of the table, for tests of single rules. Thread safety:
// none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.hpp"

namespace kilokv::test {

using namespace kilokv::engine;

inline constexpr KeyHashSecret kSecret{0x1234, 0x5678};
inline constexpr TimeUs kStamp = 1763600000000000;

// A cell as text. "-": never written; "-@9": deleted at 9; "5@7": integer; "'x'@7": bytes.
inline std::string describe(const Engine& engine, Cell cell) {
  std::string text = "-";
  if (type_of(cell.tag) == ValueType::integer) text = std::to_string(static_cast<std::int64_t>(cell.word));
  if (type_of(cell.tag) == ValueType::bytes) text = "'" + std::string(engine.bytes_of(cell)) + "'";
  return cell.tag == 0 ? text : text + "@" + std::to_string(version_of(cell.tag));
}

class Bench {
 public:
  explicit Bench(std::size_t records_max = 1u << 20) : builder(&columns, kSecret) {
    EngineOptions options;
    options.secret = kSecret;
    options.table_records_max = records_max;
    engine = std::move(*Engine::create(options));
  }

  void load(std::string_view key, std::int64_t integer, Version version = 1) {
    static_cast<void>(engine->load(key, version, ValueType::integer, integer, {}));
  }
  void load_bytes(std::string_view key, std::string_view bytes, Version version = 1) {
    static_cast<void>(engine->load(key, version, ValueType::bytes, 0, bytes));
  }

  // Adds a transaction: `body` fills its guards and operations.
  void add(const std::function<void(ColumnsBuilder&)>& body, std::uint8_t precedence = 0, bool last = false,
           bool expire_runs_else = false) {
    builder.begin(precedence, 0, expire_runs_else);
    body(builder);
    builder.end();
    expires.push_back(last ? 1 : 0);
  }
  // Adds one that is on its last try.
  void add_last(const std::function<void(ColumnsBuilder&)>& body, bool expire_runs_else = true) {
    add(body, 0, true, expire_runs_else);
  }

  // Runs the transactions that were added since the last run, with versions from `first_version` on.
  Status run(Version first_version = 100) {
    const BatchHeader header{++batch, kStamp, first_version};
    const Status status = engine->execute(header, columns, expires, &results, &writes);
    ran.clear();
    ran.append(columns, 0, columns.size());
    columns.clear();
    expires.clear();
    return status;
  }

  Outcome outcome(std::size_t t) const { return static_cast<Outcome>(results.outcome[t]); }
  std::string failure(std::size_t t) const {
    return std::to_string(results.failed_in[t]) + "." + std::to_string(static_cast<int>(results.failed_index[t]));
  }
  std::string read(std::size_t op) const {
    const bool own = (results.op_flags[op] & BatchResults::kOwnWrite) != 0;
    return describe(*engine, results.op_cell[op]) + (own ? " own" : "");
  }
  std::string get(std::string_view key) const { return describe(*engine, engine->find(key).cell); }
  // The writes as "key=value@version" separated by spaces, in order.
  std::string written(Version first_version = 100) const {
    std::string text;
    std::size_t value = 0;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      std::string what = "-";
      if (writes.type[i] == static_cast<std::uint8_t>(ValueType::integer)) what = std::to_string(writes.word[i]);
      if (writes.type[i] == static_cast<std::uint8_t>(ValueType::bytes)) {
        const std::uint32_t begin = value == 0 ? 0 : writes.value_end[value - 1];
        what = "'" + std::string(writes.value_bytes.data() + begin, writes.value_end[value] - begin) + "'";
        ++value;
      }
      text += (i == 0 ? "" : " ") + std::string(writes.key(i)) + "=" + what + "@" +
              std::to_string(first_version + writes.rank[i]);
    }
    return text;
  }

  std::unique_ptr<Engine> engine;
  TransactionColumns columns, ran;
  ColumnsBuilder builder;
  Column<std::uint8_t> expires;
  BatchResults results;
  WriteColumns writes;
  BatchNumber batch = 0;
};

}  // namespace kilokv::test
