// An engine to which tests write batch by batch, for tests of code that reads its table or waits for it. Thread safety:
// none.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine.hpp"
#include "server/core/position.hpp"

namespace kilokv::server {

class WrittenTable {
 public:
  WrittenTable() {
    engine::EngineOptions options;
    options.secret = kSecret;
    options.strategy = "serial";
    Result<std::unique_ptr<engine::Engine>> created = engine::Engine::create(options);
    EXPECT_TRUE(created.ok());
    engine_ = std::move(*created);
  }

  // Runs one batch. Its position is then now().
  void run(const std::function<void(engine::ColumnsBuilder&)>& build) {
    columns_.clear();
    engine::ColumnsBuilder builder(&columns_, kSecret);
    build(builder);
    const engine::BatchHeader header{
        .number = now_.batch + 1, .time_us = now_.time_us + 1000, .first_version = now_.next_version};
    const engine::Column<std::uint8_t> expires(columns_.size(), 0);
    engine::WriteColumns writes;
    EXPECT_TRUE(engine_->execute(header, columns_, expires, &results_, &writes).ok());
    now_ = {header.number, results_.next_version, engine_->tombstone_floor(), header.time_us, engine_->state_hash()};
  }
  void add(const std::string& key, std::int64_t delta) {
    run([&](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::add, b.key(key), engine::Operand::integer, delta);
      b.end();
    });
  }
  void put(const std::string& key, const std::string& value) {
    run([&](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::put, b.key(key), engine::Operand::bytes, b.value(value));
      b.end();
    });
  }
  void erase(const std::string& key) {
    run([&](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::del, b.key(key));
      b.end();
    });
  }

  engine::Engine* engine() { return engine_.get(); }
  const Position& now() const { return now_; }

  static constexpr engine::KeyHashSecret kSecret{1, 2};

 private:
  engine::TransactionColumns columns_;  // before-images are made of the last batch
  engine::BatchResults results_;
  std::unique_ptr<engine::Engine> engine_;
  Position now_;
};

}  // namespace kilokv::server
