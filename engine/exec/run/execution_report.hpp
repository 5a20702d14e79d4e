// How the last batch was executed: for the bench's report, the server's status, and tests. Not results: two strategies
// that agree on these may differ here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/stm/papers/local_arguments.hpp"

namespace kilokv::engine {

struct ExecutionReport {
  const char* strategy = "serial";  // that ran it
  bool any_order = false;           // in an order of its own, which the ranks give; else in that of the specification
  bool on_device = false;           // by the device's kernels
  std::uint32_t devices_lost = 0;   // since the engine began: given up for an error
  std::uint32_t validated = 0;      // reads of a large read set that were checked ahead (exec/validate/read_set.hpp)
  std::uint32_t validated_beside = 0;  // of these, not by the caller's thread: by another, a device, or nobody any more
  // Of `ordered`:
  std::uint64_t rounds = 0;        // of all passes
  std::uint64_t reservations = 0;  // words that somebody asked for, of all rounds
  std::uint64_t chained_adds = 0;  // ADDs that could commute but for the overflow bound, the type, or an order
  std::uint64_t tail = 0;          // transactions that ran one by one, where rounds would decide too few
  std::uint64_t walked = 0;        // of these: in chains that share no record, side by side
  // Of those with tickets (stm/papers/ticketed_arguments.hpp, TicketedCounts, says what they are):
  std::uint64_t attempts = 0, conflicts = 0, under_locks = 0, steals = 0, stolen = 0;
  std::uint64_t retried = 0, wasted_tickets = 0, hazards = 0, limit_changes = 0;
  std::uint64_t staged = 0, lane_restarts = 0, signature_aliases = 0, warp_serialized = 0, block_serialized = 0;
  std::uint32_t stage_blocks = 0;  // of a device, in whose memory the stage was; 0: it was none's
  LocalTimes local_times = {};     // of all its threads, where LocalTuning asks for them
  // Of a device:
  std::uint64_t sent_bytes = 0, returned_bytes = 0;  // the batch's columns there, what came of it back
  // By its clock: these copies, and all between them.
  double sent_seconds = 0, kernel_seconds = 0, returned_seconds = 0;
  // Of all parallel ones:
  std::uint64_t postponed = 0;                 // times that a WAIT guard postponed one
  std::vector<std::uint64_t> decided_by = {};  // [threads, or a device's groups] transactions by who decided them

  // Of a batch that this strategy ran: nothing of the one before, nor of one that a device gave up.
  void begin(const char* of) {
    decided_by.clear();
    *this = {.strategy = of,
             .on_device = on_device,
             .devices_lost = devices_lost,
             .validated = validated,
             .validated_beside = validated_beside,
             .decided_by = std::move(decided_by)};
  }
};

// Where batches run now.
struct EngineDevice {
  std::string name = "cpu";  // cpu, cuda or emulated
  std::string model;         // of the device, such as "NVIDIA H200"
  std::string reason;        // why not the device that was asked for; empty: it is the one
};

}  // namespace kilokv::engine
