// What every call of the service uses. Thread safety: that of its parts.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "server/core/clients/client.hpp"
#include "server/service/answer_account.hpp"
#include "server/service/decode_queue.hpp"
#include "server/service/gate.hpp"
#include "server/service/logins.hpp"
#include "server/service/open_calls.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

struct CallEnvironment {
  const ServiceOptions options;
  AnswerAccount answers{options.answers_bytes_max, options.answer_us_max};
  DatabaseGate gate = {};
  Logins logins{options, &gate};
  OpenCalls calls = {};
  // Half of gRPC's memory, which holds these messages, is left for what is on its way.
  DecodeQueue decode{options.grpc_memory_max / 2, "--grpc-memory-max"};

  // Decodes a message by `work`, as DecodeQueue::run says.
  template <class Work>
  Status decode_by(const std::shared_ptr<Client>& client, std::uint64_t bytes, Work work) {
    const Result<Database*> database = gate.get();
    if (gate.closed()) {  // it is refused at once, so that nothing new waits
      work();
      return {};
    }
    const std::uint64_t queued_max =
        database.ok() ? 2 * std::uint64_t{(*database)->options().batch_max_transactions} : UINT64_MAX;
    return decode.run(client, bytes, queued_max, std::move(work));
  }
};

}  // namespace kilokv::server
