// The byte form of a ResultSlice: what a session stores of a request's results in memory, in the log and in the
// checkpoint. For docs/log-format.md these bytes are opaque. stored_results.cpp describes the layout.
//
// A committed transaction without reads takes two bytes. What the transactions of a slice share is stored once.
//
// Thread safety: pure functions; a StoredSlice is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {

// The memory that stored results take beside their own bytes: for each slice, and for the request that they belong to.
inline constexpr std::uint64_t kSliceBytes = sizeof(std::string);
inline constexpr std::uint64_t kRequestBytes = 256;

// Appends the encoding of `slice` to `out`. If a transaction's guard value and reads take more than `result_bytes_max`
// bytes, or more than what is left of `read_bytes`, it is stored without them, and reads_dropped is set. The bytes of
// those that are stored are subtracted from `read_bytes`. Requires: all transactions of the slice are from one batch,
// and have increasing indices.
void encode_results(const ResultSlice& slice, std::uint64_t result_bytes_max, std::uint64_t* read_bytes,
                    std::string* out);

// An encoded slice that was read back. It owns its bytes. What it shows to a visitor points into them.
class StoredSlice : public ResultSlice {
 public:
  // Checks all bytes, so that visit() cannot fail. Errors: DATA_LOSS if the bytes are not the encoding of a slice.
  static Result<StoredSlice> parse(std::string bytes);

  std::uint32_t size() const override { return size_; }
  void visit(ResultVisitor* visitor) const override;
  BatchNumber batch() const { return batch_; }

 private:
  StoredSlice(std::string bytes, std::uint32_t size, BatchNumber batch)
      : bytes_(std::move(bytes)), size_(size), batch_(batch) {}

  std::string bytes_;
  std::uint32_t size_;
  BatchNumber batch_;
};

}  // namespace kilokv::server
