// What the fuzz targets share. Each target is one file with LLVMFuzzerTestOneInput. A target calls a real decoder with
// any bytes, and checks with KILOKV_CHECK what must hold for whatever the decoder accepts.
//
// Thread safety: none; libFuzzer runs a target in one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/check.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/validate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace kilokv::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes the first byte off. It chooses between the decoders of one target. 0 if there is none.
inline std::uint8_t take_choice(std::string_view* bytes) {
  if (bytes->empty()) return 0;
  const auto choice = static_cast<std::uint8_t>(bytes->front());
  bytes->remove_prefix(1);
  return choice;
}

// A folder for decoders that read files. It is removed at the end of the process.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  // Writes the file anew, and returns its path.
  std::string write(const std::string& name, std::string_view content) const;

 private:
  std::string path_;
};

// The limits under which transactions are decoded: those of the product, but with few keys for each range.
const engine::TransactionLimits& limits();

inline constexpr engine::KeyHashSecret kSecret{1, 2};

// What must hold for columns that a decoder accepted. They pass validation. Each transaction can be packed and
// unpacked. `serial` runs the batch, twice, as the referee says.
void check_accepted(const engine::TransactionColumns& columns);

}  // namespace kilokv::fuzz
