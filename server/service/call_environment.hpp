// What every call of the service uses. Thread safety: that of its parts.
#pragma once

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "server/core/access/access_check.hpp"
#include "server/core/clients/client.hpp"
#include "server/edge/connections.hpp"
#include "server/service/answer_account.hpp"
#include "server/service/backup_metrics.hpp"
#include "server/service/call_metrics.hpp"
#include "server/service/decode_queue.hpp"
#include "server/service/gate.hpp"
#include "server/service/logins.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/open_calls.hpp"
#include "server/service/options.hpp"
#include "server/service/refusal_log.hpp"
#include "server/service/traces.hpp"

namespace kilokv::server {

struct CallEnvironment {
  const ServiceOptions options;
  AnswerAccount answers{options.answers_bytes_max, options.answer_us_max, options.handshake_us_max};
  DatabaseGate gate = {};
  Logins logins{options, &gate};
  OpenCalls calls = {};
  CallMetrics metrics = {};
  RefusalLog refusals = {};
  Traces traces = {};
  BackupMetrics backups = {};
  std::atomic<std::uint32_t> open_connections{0};
  // All open connections; empty until the port is open.
  std::function<std::vector<ConnectionInfo>()> connections = {};
  std::atomic<std::uint64_t> http_bytes{0};  // memory of the pages over HTTP, and of their connections
  DecodeQueue decode{options.waiting_messages_max(), "--grpc-memory-max", options.message_bytes_max};

  // A request, or a call, of this client ended with the status: counts an error for the metrics, and writes it to the
  // log.
  void refuse(const Status& status, const Client& of) {
    if (is_refused_status_call(status)) return;
    metrics.refuse(status);
    refusals.note(status, of);
  }

  // Takes the bytes of a message, and counts them for their connection.
  static grpc::ByteBuffer take_message(const Caller& caller, grpc::ByteBuffer* incoming) {
    grpc::ByteBuffer taken;
    taken.Swap(incoming);
    caller.connection->accounted_bytes.fetch_add(accounted_bytes(taken.Length()), std::memory_order_relaxed);
    caller.connection->message_bytes.fetch_add(taken.Length(), std::memory_order_relaxed);
    return taken;
  }

  // PERMISSION_DENIED: the login of an open call does not count any more.
  Status check_login(const Caller& caller) const {
    if (caller.login == nullptr) return {};
    const Result<Database*> database = gate.get();
    if (!database.ok() || (*database)->access().latest()->rights(*caller.login) != nullptr) return {};
    return login_gone(caller.login->user);
  }

  // Runs work that takes as long as to decode a message of so many bytes: now, or in the client's turn of decoding.
  // RESOURCE_EXHAUSTED: too much waits there, and the work is not run.
  Status run_by(const std::shared_ptr<Client>& client, std::uint64_t bytes, const std::function<void()>& work) {
    if (bytes <= DecodeQueue::kShortBytes || gate.closed()) {
      work();
      return {};
    }
    return decode.run(client, bytes, UINT64_MAX, work, [&work] { return work; });
  }

  // Decodes `message` by `work(&message)`, as DecodeQueue::run says. A message that has to wait leaves gRPC's memory:
  // when that memory is full, gRPC ends connections, and it does not look whose they are.
  template <class Work>
  Status decode_by(const std::shared_ptr<Client>& client, grpc::ByteBuffer* message, const Work& work) {
    const Result<Database*> database = gate.get();
    const std::uint64_t bytes = message->Length();
    if (bytes <= DecodeQueue::kShortBytes || gate.closed()) {  // a closed gate refuses it, so that nothing new waits
      work(message);
      return {};
    }
    const std::uint64_t queued_max =
        database.ok() ? 2 * std::uint64_t{(*database)->options().batch_max_transactions} : UINT64_MAX;
    return decode.run(
        client, bytes, queued_max, [&] { work(message); },
        [&] { return [own = copy_out(*message), work]() mutable { work(&own); }; });
  }
};

}  // namespace kilokv::server
