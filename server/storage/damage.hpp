// How a check tells of damages. Thread safety: plain types.
#pragma once

#include <functional>

#include "engine/base/status.hpp"

namespace kilokv::server::storage {

// Is told of a damage: DATA_LOSS, with the place and the reason.
using OnDamage = std::function<void(const Status& damage)>;

}  // namespace kilokv::server::storage
