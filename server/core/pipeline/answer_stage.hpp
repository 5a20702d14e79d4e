// Third stage: tells the clients. A batch comes here only when it is durable. Scan pages and other reads of the
// executed state wait here too (CoreContext::at_boundary), so that nobody hears of what is not durable.
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
