// Second stage: makes batches durable. It takes all batches that were executed since its last step, and appends their
// records with one sync (group commit). So a slow disk gets larger groups, not a longer queue.
//
// Thread safety: only the log worker.
#pragma once

#include <memory>
#include <vector>

#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class LogStage {
 public:
  explicit LogStage(CoreContext* core) : core_(core) {}
  TimeUs step();

 private:
  void encode_results(Batch* batch);
  void add_session_results(Batch* batch);

  CoreContext* core_;
  std::vector<std::unique_ptr<Batch>> group_;
  std::vector<LogRecord> records_;
};

}  // namespace kilokv::server
