#include "server/storage/check.hpp"

#include <cstdint>
#include <limits>
#include <memory>

#include "server/storage/log_history.hpp"
#include "server/storage/recovery.hpp"
#include "server/storage/store.hpp"

namespace kilokv::server::storage {

Result<CheckedLog> check_directory(const StorageOptions& options, RecoveryVisitor* visitor, const OnDamage& found) {
  const Result<std::unique_ptr<Store>> store = Store::open_to_check(options, found);
  if (!store.ok()) return store.status();
  LogHistory history(std::numeric_limits<std::uint64_t>::max());
  Recovery recovery(store->get(), visitor, &history, nullptr);
  const Result<RecoveredPosition> position = recovery.check(found);
  if (!position.ok()) return position.status();
  return CheckedLog{*position, history.first_batch()};
}

}  // namespace kilokv::server::storage
