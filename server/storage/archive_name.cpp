#include "server/storage/archive_name.hpp"

#include <charconv>
#include <system_error>

namespace kilokv::server::storage {
namespace {

constexpr std::size_t kDigits = 20;
constexpr std::string_view kEnding = ".log";

std::string padded(BatchNumber batch) {
  const std::string digits = std::to_string(batch);
  return std::string(kDigits - digits.size(), '0') + digits;
}

std::optional<BatchNumber> number_in(std::string_view digits) {
  BatchNumber batch = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), batch);
  if (error != std::errc() || end != digits.data() + digits.size() || batch == 0) return std::nullopt;
  return batch;
}

}  // namespace

std::string archive_folder(const std::string& directory, const Incarnation& incarnation) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string folder = directory + "/";
  for (const unsigned char byte : incarnation.id) {
    folder += kHex[byte >> 4];
    folder += kHex[byte & 15];
  }
  return folder;
}

bool is_archive_folder(std::string_view name) {
  return name.size() == 2 * sizeof(Incarnation::id) && name.find_first_not_of("0123456789abcdef") == name.npos;
}

std::string archive_file_name(BatchNumber first, BatchNumber last) {
  return padded(first).append("-").append(padded(last)).append(kEnding);
}

std::optional<std::pair<BatchNumber, BatchNumber>> batches_of_archive_file(std::string_view name) {
  if (name.size() != 2 * kDigits + 1 + kEnding.size() || name[kDigits] != '-' || !name.ends_with(kEnding)) {
    return std::nullopt;
  }
  const auto first = number_in(name.substr(0, kDigits)), last = number_in(name.substr(kDigits + 1, kDigits));
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace kilokv::server::storage
