// Third stage: answers the clients. A batch comes here only when it is durable. Pages of scans, and other reads of the
// executed state, also wait here (CoreContext::at_boundary), so that no client sees what is not durable.
//
// Thread safety: only the answer worker.
#pragma once

#include <memory>

#include "server/core/pipeline/core_context.hpp"

namespace kilokv::server {

class AnswerStage {
 public:
  explicit AnswerStage(CoreContext* core) : core_(core) {}
  TimeUs step();

 private:
  void answer(Batch* batch);
  void answer_part(const Batch& batch, const BatchPart& part);

  CoreContext* core_;
};

}  // namespace kilokv::server
