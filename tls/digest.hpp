// SHA-256. Thread safety: a pure function.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

namespace kilokv::tls {

using Sha256 = std::array<unsigned char, 32>;

// The digest of the texts, one after the other.
Sha256 sha256(std::initializer_list<std::string_view> texts);

}  // namespace kilokv::tls
