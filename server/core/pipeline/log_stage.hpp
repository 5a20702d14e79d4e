// Second stage: makes batches durable. Takes every batch that was executed meanwhile and appends all their records with
// one sync (group commit), so that a slow disk gets larger groups, not a longer queue.
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
