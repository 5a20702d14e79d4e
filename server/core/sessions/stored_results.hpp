// The byte form of a ResultSlice: what a session stores of a request's results in memory, in the log and in the
// checkpoint. For docs/log-format.md these bytes are opaque. stored_results.cpp describes the layout.
//
// A committed transaction without reads takes two bytes. What the transactions of a slice share is stored once.
//
// Thread safety: pure functions; stored bytes and a StoredSlice are immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {

// The encoding of one slice. The session and those who are showing it share the bytes.
using StoredBytes = std::shared_ptr<const std::string>;

// The memory that stored results take beside their own bytes: for each slice (its pointer, the count of its owners, and
// its string), and for the request that they belong to.
inline constexpr std::uint64_t kSliceBytes = sizeof(StoredBytes) + 16 + sizeof(std::string);
inline constexpr std::uint64_t kRequestBytes = 320;

// Appends the encoding of `slice` to `out`. If a transaction's guard value and reads take more than `result_bytes_max`
// bytes, or more than what is left of `read_bytes`, it is stored without them, and reads_dropped is set. The bytes of
// those that are stored are subtracted from `read_bytes`. Requires: all transactions of the slice are from one batch,
// and have increasing indices.
void encode_results(const ResultSlice& slice, std::uint64_t result_bytes_max, std::uint64_t* read_bytes,
                    std::string* out);

// An encoded slice that was read back. What it shows to a visitor points into its bytes.
class StoredSlice : public ResultSlice {
 public:
  // Checks all bytes, so that visit() cannot fail. Errors: DATA_LOSS if the bytes are not the encoding of a slice.
  static Result<StoredSlice> parse(StoredBytes bytes);
  static Result<StoredSlice> parse(std::string bytes) {
    return parse(std::make_shared<const std::string>(std::move(bytes)));
  }
  // The same without the check of all bytes, in constant time. Requires: encode_results() made them, or parse() has
  // accepted them.
  static StoredSlice of_checked(StoredBytes bytes);

  std::uint32_t size() const override { return size_; }
  void visit(ResultVisitor* visitor) const override;
  BatchNumber batch() const { return batch_; }

 private:
  StoredSlice(StoredBytes bytes, std::uint32_t size, BatchNumber batch)
      : bytes_(std::move(bytes)), size_(size), batch_(batch) {}

  StoredBytes bytes_;
  std::uint32_t size_;
  BatchNumber batch_;
};

}  // namespace kilokv::server
