// Reads the value of `put` from standard input. An input may have no end, so what is read has a bound.
//
// Thread safety: functions without shared state.
#pragma once

#include <cstddef>
#include <string>

#include "kilokv/error.hpp"

namespace kilokv::client {

// A value is in one request, and no setting of kilokvd lets a request be longer (--message-bytes-max). The server's own
// limits are lower by default, and it tells them when it refuses a value.
inline constexpr std::size_t kValueBytesMax = std::size_t{64} << 20;

// Reads up to the end. Errors: INVALID_ARGUMENT: there are more than `bytes_max` bytes; FAILED_PRECONDITION: the
// descriptor cannot be read.
Expected<std::string> read_value(int descriptor, std::size_t bytes_max = kValueBytesMax);

}  // namespace kilokv::client
