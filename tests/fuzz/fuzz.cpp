#include "tests/fuzz/fuzz.hpp"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "engine/engine.hpp"
#include "engine/referee/referee.hpp"

namespace kilokv::fuzz {

Folder::Folder() {
  std::string pattern = std::filesystem::temp_directory_path().string() + "/kilokv-fuzz-XXXXXX";
  KILOKV_CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

Folder::~Folder() { std::filesystem::remove_all(path_); }

std::string Folder::write(const std::string& name, std::string_view content) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

const engine::TransactionLimits& limits() {
  static const engine::TransactionLimits kLimits{.range_keys_max = 100};
  return kLimits;
}

namespace {

void check_packing(const engine::TransactionColumns& columns) {
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const std::string packed = engine::pack_transaction(columns, t);
    engine::TransactionColumns one;
    engine::unpack_transaction(packed, &one);
    KILOKV_CHECK(one.size() == 1);
    KILOKV_CHECK(engine::validate(one, limits()).ok());
    KILOKV_CHECK(engine::pack_transaction(one, 0) == packed);
  }
}

void check_execution(const engine::TransactionColumns& columns) {
  Result<std::unique_ptr<engine::Engine>> created = engine::Engine::create({.strategy = "serial", .secret = kSecret});
  KILOKV_CHECK(created.ok());
  engine::Engine& engine = **created;
  engine::ModelState state;
  engine::BatchHeader header{.number = 1, .time_us = 1'700'000'000'000'000, .first_version = 1};
  const engine::Column<std::uint8_t> expires(columns.size(), 0);
  engine::BatchResults results;
  engine::WriteColumns writes;
  for (; header.number <= 2; ++header.number) {
    KILOKV_CHECK(engine.execute(header, columns, expires, &results, &writes).ok());
    const engine::Execution execution{header,  columns, expires,
                                      results, writes,  [&](Cell cell) { return engine.bytes_of(cell); }};
    KILOKV_CHECK(engine::check_execution(execution, engine::RefereeMode::deterministic, &state).ok());
    header.first_version = results.next_version;
  }
  KILOKV_CHECK(engine::check_state(state, engine).ok());
}

}  // namespace

void check_accepted(const engine::TransactionColumns& columns) {
  KILOKV_CHECK(engine::validate(columns, limits()).ok());
  check_packing(columns);
  check_execution(columns);
}

}  // namespace kilokv::fuzz
