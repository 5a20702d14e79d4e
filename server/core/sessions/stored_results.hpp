// The byte form of a ResultSlice: what a session keeps of a request's results, in memory, in the log and in the
// checkpoint. docs/log-format.md treats it as opaque; the layout is described in stored_results.cpp.
//
// A committed transaction without reads costs two bytes; what the transactions of a slice share stands once.
//
// Thread safety: none needed; a StoredSlice is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {

// What stored results take in memory beside their own bytes: each slice, and the request that they belong to.
inline constexpr std::uint64_t kSliceBytes = sizeof(std::string);
inline constexpr std::uint64_t kRequestBytes = 256;

// Appends the encoding of `slice` to `out`. A transaction whose guard value and reads would take more than
// `result_bytes_max` bytes, or more than what is left of `read_bytes`, is stored without them, with reads_dropped set.
// Those that are stored are taken from `read_bytes`.
// Requires: all transactions of the slice are from one batch, with increasing indices.
void encode_results(const ResultSlice& slice, std::uint64_t result_bytes_max, std::uint64_t* read_bytes,
                    std::string* out);

// An encoded slice, read back. It owns its bytes; what it shows a visitor points into them.
class StoredSlice : public ResultSlice {
 public:
  // Checks everything, so that visit() cannot fail. DATA_LOSS when the bytes are no encoding of a slice.
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
