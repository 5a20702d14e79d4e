// What a database or a backup holds, in plain numbers. No type of the server is here, so that the client's programs can
// use it. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace kilokv::server::offline {

struct Summary {
  std::uint64_t batch = 0;             // the last one
  std::uint64_t checkpoint_batch = 0;  // the batch that the checkpoint covers
  std::uint64_t first_log_batch = 0;   // of the log records that are kept; 0: none
  std::uint64_t next_version = 0;
  std::int64_t time_us = 0;  // the stamp of the last batch
  std::string state_hash;    // 32 hexadecimal digits, as `kilokv status` prints it
  std::string incarnation;   // likewise
  std::uint64_t records = 0, tombstones = 0, sessions = 0, users = 0;
  bool is_archive = false;  // then there are no records and so on
  std::uint64_t files = 0;  // of an archive
  std::uint64_t damages = 0;
  bool complete = false;  // everything could be read, and the numbers above are known
};

// Is told of each damage, with its place.
using TellDamage = std::function<void(const std::string& damage)>;

}  // namespace kilokv::server::offline
