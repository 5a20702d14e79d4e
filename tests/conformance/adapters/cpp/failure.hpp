// An error of the library ends a call of the conformance test by an exception.
#pragma once

#include <utility>

#include "kilokv/error.hpp"

namespace kilokv::conformance {

struct Failure {
  client::Error error;
};

inline void check(client::Error error) {
  if (error) throw Failure{std::move(error)};
}

template <class T>
T value_of(client::Expected<T> expected) {
  if (!expected) throw Failure{expected.error()};
  return std::move(*expected);
}

}  // namespace kilokv::conformance
