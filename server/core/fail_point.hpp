// Named points at which a test makes the real server fail. They are always compiled in. A point costs one relaxed load
// if none is set.
//
// The environment variable KILOKV_FAIL_POINTS sets them. It is read once, when the process starts:
//   NAME=ACTION[:N] separated by `;`, such as storage.append.before_sync=kill:3;storage.append.skip_sync=always
//   kill:N    the process sends itself SIGKILL at the N-th pass (default: the first)
//   error:N   the N-th pass fails
//   hang:N    the N-th pass never ends, as that of a disk that does not answer
//   always    every pass fails
// A malformed value ends the process at its start. Each point defines what its failure means:
//   storage.append.write         half of what goes to the write-ahead log is written; then an I/O error (or the kill)
//   storage.append.before_sync   kill, hang: written, not yet synced
//   storage.append.sync          the sync fails with an I/O error, and no sync is tried
//   storage.append.skip_sync     the sync is left out and reported as done: the mutation for the sync test
//   storage.append.after_sync    kill: synced, not yet answered
//   storage.checkpoint.records   kill, error: before a group of state records is written
//   storage.checkpoint.flush     kill, error: records and sessions written, not yet durable
//   storage.checkpoint.commit    kill, error: records and sessions durable, the old checkpoint still counts
//   storage.checkpoint.committed kill, error: the new checkpoint counts, what it replaces is not yet removed
//   storage.archive.write        error: before a file of the archive is written
//   storage.trim.files           kill, error: the new start of the log is durable, its files are not yet removed
//   core.execute.before          hang: the executor has a batch, and does not run it
//   core.execute.lost_writes     the writes of the batch are left out of its record: the mutation for the shadow check
//   engine.device.call           error: the call to the emulated device fails, and the device is lost
// The storage.append points act on the file of the write-ahead log, from the end of recovery on. A checkpoint or trim
// that commits passes them too. A point of another part begins with that part's name (core.answer.before), and is
// listed where it is passed.
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <string_view>

#include "engine/base/status.hpp"

namespace kilokv::server {

namespace internal {
extern std::atomic<bool> fail_points_set;
bool pass_fail_point(std::string_view name);
}  // namespace internal

inline bool fail_points_set() { return internal::fail_points_set.load(std::memory_order_relaxed); }

// Whether the point fails now. Does not return if the point is set to kill or to hang.
inline bool fail_point(std::string_view name) { return fail_points_set() && internal::pass_fail_point(name); }

// Replaces all points and their counts by those of `text` (empty: none). For tests in the same process. Errors:
// INVALID_ARGUMENT, which names the malformed entry; then nothing has changed.
Status set_fail_points(std::string_view text);

}  // namespace kilokv::server
