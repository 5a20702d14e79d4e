#include "server/offline/as_of.hpp"

#include <string>
#include <vector>

#include "server/core/request.hpp"
#include "server/core/sessions/stored_results.hpp"

namespace kilokv::server::offline {
namespace {

// The stamp of the batch that decided the results.
class StampVisitor final : public ResultVisitor {
 public:
  void transaction(const TransactionResult& result) override { time_us = result.batch_time_us; }
  void guard_value(const ReadValue& /*value*/) override {}
  void read(std::uint32_t /*operation*/, const ReadValue& /*value*/) override {}
  TimeUs time_us = 0;
};

bool is_later(const storage::BackupUntil& until, const StoredSlice& slice) {
  if (until.batch && slice.batch() > *until.batch) return true;
  if (!until.time_us) return false;
  StampVisitor stamp;
  slice.visit(&stamp);
  return stamp.time_us > *until.time_us;
}

}  // namespace

Status drop_later_results(const storage::BackupUntil& until, StoredSession* session) {
  std::vector<StoredSession::Request> requests;
  for (StoredSession::Request& request : session->requests) {
    std::vector<std::string> kept;
    for (std::string& results : request.results) {
      const Result<StoredSlice> slice = StoredSlice::parse(results);
      if (!slice.ok()) return slice.status();
      if (!is_later(until, *slice)) kept.push_back(std::move(results));
    }
    if (kept.empty()) continue;
    request.results = std::move(kept);
    requests.push_back(std::move(request));
  }
  session->requests = std::move(requests);
  return {};
}

Status AsOf::session(const StoredSession& session, std::string_view key) {
  if (!until_.batch && !until_.time_us) return next_->session(session, key);
  StoredSession earlier = session;
  if (Status status = drop_later_results(until_, &earlier); !status.ok()) return status;
  return next_->session(earlier, key);
}

}  // namespace kilokv::server::offline
