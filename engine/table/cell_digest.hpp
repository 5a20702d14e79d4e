// Digests by which the host's table and a device's table are compared. They find faults. They are no protection against
// somebody who wants to make two tables look equal.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/base/types.hpp"

namespace kilokv::engine {

// The digest of a cell. The seed of a cell that was found is the number of the item that found it. If two tables agree,
// the sums of these digests are equal; if they differ, the sums are almost never equal.
KILOKV_HOST_DEVICE inline std::uint64_t cell_digest(std::uint64_t seed, Cell cell) {
  const std::uint64_t mixed = (cell.word ^ cell.tag * 0x9E3779B97F4A7C15u) * (2 * seed + 0xD1B54A32D192ED03u);
  return mixed ^ mixed >> 32;
}
// The digest of a change of the record with this id. The sum over the writes to a record is the digest of the change
// from its first cell to its last one.
KILOKV_HOST_DEVICE inline std::uint64_t change_digest(KeyId id, Cell before, Cell after) {
  return cell_digest(id.low, after) - cell_digest(id.low, before);
}

}  // namespace kilokv::engine
