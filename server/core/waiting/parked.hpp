// One parked transaction, as its owner sees it. Thread safety: plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/types.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// What is parked together with the transaction itself.
struct Parked {
  std::uint64_t id = 0;         // 0: park() gives one; kept when the transaction is parked again
  std::shared_ptr<void> owner;  // the object with which the caller answers it
  Client* client = nullptr;     // who sent it; lives as long as `owner`; null: nobody in particular
  std::optional<SessionId> session;
  std::uint64_t request = 0;  // number in the session
  std::uint32_t index = 0;    // in the request
  std::uint64_t arrival = 0;  // of its first arrival; unique, or ordered by index within one request
  BatchNumber admitted_batch = 0;
  TimeUs since_us = 0;           // stamp of the batch that parked it first
  TimeUs deadline_us = 0;        // compared with batch stamps
  TimeUs next_time_us = kNever;  // the next one with which a guard compares the stamp (Engine::next_time)
  std::uint32_t guard = 0;       // the deciding guard
  std::uint8_t precedence = 0;
  bool awake = false;              // it is to run again, although it may not be due; ParkingLot sets it
  std::uint64_t owner_bytes = 0;   // its part of what `owner` takes
  std::uint32_t range_guards = 0;  // filled by park()
  // What it takes of a batch, in kWholeBatch-ths, and the largest value with which that was estimated. The caller
  // estimates. 0: not known yet.
  std::uint64_t part = 0, part_value = 0;
  std::string packed;  // filled by park() (engine::pack_transaction)

  // The stamp at which it is tried again in any case.
  TimeUs due_us() const { return std::min(deadline_us, next_time_us); }
  // Who counts what it holds, and takes turns for it. A session outlives the connection.
  Client* holder() const { return client != nullptr && session ? client->keeper() : client; }
};

// The work of looking at a parked transaction grows with its size. So work is bounded by looks. A transaction
// takes one look, and more for each kBytesPerLook bytes and for each guard on a range. A step has kLooksPerStep looks,
// which take about a millisecond at most: 512 bytes have about ten guards, and a guard on a range reads up to 384
// records.
inline constexpr std::size_t kBytesPerLook = 512, kLooksPerRangeGuard = 38, kLooksPerStep = 1024;
inline std::size_t looks_of(const Parked& parked) {
  return 1 + parked.packed.size() / kBytesPerLook + parked.range_guards * kLooksPerRangeGuard;
}

}  // namespace kilokv::server
