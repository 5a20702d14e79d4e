// The strategies with tickets on threads of the host. Thread safety: one caller at a time; its threads are its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/exec/run/executor.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

// An executor of `prstm`, `lock`, `gpustm`, `kilo` or `local`; null: of no such strategy.
std::unique_ptr<Executor> make_ticketed_host(const std::string& strategy, std::uint32_t threads,
                                             const TicketedTuning& tuning);

}  // namespace kilokv::engine
