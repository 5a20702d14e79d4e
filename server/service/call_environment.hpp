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
#include "server/service/message_buffer.hpp"
#include "server/service/open_calls.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

struct CallEnvironment {
  const ServiceOptions options;
  AnswerAccount answers{options.answers_bytes_max, options.answer_us_max};
  DatabaseGate gate = {};
  Logins logins{options, &gate};
  OpenCalls calls = {};
  DecodeQueue decode{options.waiting_messages_max(), "--grpc-memory-max"};

  // Decodes `message` by `work(&message)`, as DecodeQueue::run says. If it has to wait, it leaves gRPC's memory, and
  // `message` is empty then: when that memory is full, gRPC ends connections, and it does not look whose they are. A
  // refused message stays as it is.
  template <class Work>
  Status decode_by(const std::shared_ptr<Client>& client, grpc::ByteBuffer* message, const Work& work) {
    const Result<Database*> database = gate.get();
    if (gate.closed()) {  // it is refused at once, so that nothing new waits
      work(message);
      return {};
    }
    const std::uint64_t queued_max =
        database.ok() ? 2 * std::uint64_t{(*database)->options().batch_max_transactions} : UINT64_MAX;
    return decode.run(client, message->Length(), queued_max, Decoding<Work>{message, {}, work});
  }

 private:
  template <class Work>
  struct Decoding {
    grpc::ByteBuffer* message;  // null: `own`
    grpc::ByteBuffer own;
    Work work;

    void operator()() { work(message == nullptr ? &own : message); }
    void keep() {
      own = copy_out(*message);
      message->Clear();
      message = nullptr;
    }
  };
};

}  // namespace kilokv::server
