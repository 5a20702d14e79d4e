// The answers of the calls that show what goes on at present: ListHotKeys, ListSlow, ListSessions and ListConnections
// (proto/kilokv/v1/activity.proto).
//
// An answer that would be longer than a message may be has only its first entries.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/status.hpp"
#include "kilokv/v1/activity.pb.h"
#include "server/core/access/access.hpp"
#include "server/core/hot_keys.hpp"
#include "server/core/sessions/session_info.hpp"
#include "server/core/slow_transaction.hpp"
#include "server/edge/connections.hpp"

namespace kilokv::server {

// The most entries that a caller may ask for, and how many it gets if it does not say. For hot keys: of each use.
struct ListLimit {
  std::uint32_t most, usual;
};
inline constexpr ListLimit kHotKeysLimit{256, 20}, kSlowLimit{1000, 100}, kSessionsLimit{10000, 100},
    kConnectionsLimit{10000, 100};

// INVALID_ARGUMENT: more than the most. 0 asks for the usual number.
Result<std::uint32_t> limit_of(std::uint32_t asked, const ListLimit& limit);

// Shows keys to a caller as far as it may read them: others as hashes.
class KeyViewer {
 public:
  // `rights`: null: the caller may read everything. Both outlive the viewer.
  KeyViewer(const Rights* rights, const engine::KeyHashSecret* secret) : rights_(rights), secret_(secret) {}
  void show(const std::string& key, bool is_range, v1::ShownKey* shown) const;

 private:
  const Rights* rights_;
  const engine::KeyHashSecret* secret_;
};

// The uses that the caller asks for. INVALID_ARGUMENT: there is no such use.
Result<std::vector<KeyUse>> uses_of(v1::KeyUse asked);

// `hot`: of each of the uses. `bytes_max` here and below: of the answer.
void fill_hot_keys(const std::vector<KeyUse>& uses, const std::vector<HotKeys>& hot, const KeyViewer& viewer,
                   std::uint64_t bytes_max, v1::ListHotKeysResponse* response);
void fill_slow(const std::vector<SlowTransaction>& slow, std::uint32_t limit, const KeyViewer& viewer,
               std::uint64_t bytes_max, v1::ListSlowResponse* response);
// `counts`: by SlowReason.
void fill_slow_counts(const std::array<std::uint64_t, kSlowReasons>& counts, v1::ListSlowResponse* response);
// `count`: of all open sessions.
void fill_sessions(std::vector<SessionInfo> sessions, std::uint64_t count, std::uint64_t bytes_max,
                   v1::ListSessionsResponse* response);
// `user_of`: the user of the last call of a peer.
void fill_connections(std::vector<ConnectionInfo> connections, std::uint32_t limit,
                      const std::function<std::string(const std::string& peer)>& user_of, std::uint64_t bytes_max,
                      v1::ListConnectionsResponse* response);

}  // namespace kilokv::server
