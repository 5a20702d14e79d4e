// Role: see health.hpp.
#include "server/service/health.hpp"

#include <grpc/health/v1/health.pb.h>

#include <optional>
#include <utility>
#include <vector>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "server/core/one_line.hpp"
#include "server/service/answer_stream.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/unary_call.hpp"

namespace kilokv::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

bool is_known(const std::string& name) { return name.empty() || name == v1::KiloKV::service_full_name(); }

grpc::ByteBuffer answer_of(HealthCheckResponse::ServingStatus state) {
  HealthCheckResponse response;
  response.set_status(state);
  return serialize_message(response);
}

HealthCheckResponse::ServingStatus state_of(bool serving) {
  return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

class HealthCheck final : public UnaryCall {
 public:
  HealthCheck(CallContext* context, CallEnvironment* environment, const Health* health)
      : UnaryCall(context, environment, NeedsLogin::no), health_(health) {}

 private:
  void on_message(grpc::ByteBuffer* message) override {
    HealthCheckRequest request;
    Status status = parse_short_message(message, Health::kRequestBytesMax, &request);
    if (status.ok() && !is_known(request.service())) {
      status = Status(StatusCode::not_found, ErrorReason::unknown_method,
                      "this server has no service \"" + short_line(request.service()) + '"');
    }
    if (status.ok()) {
      answer(answer_of(state_of(health_->serving())));
    } else {
      end_with(status.as_not_run());
    }
  }

  const Health* const health_;
};

}  // namespace

// The stream stays open. It tells each state that differs from the last one. Its message has a time limit, because it
// needs no login.
class HealthWatch final : public AnswerStream {
 public:
  HealthWatch(CallContext* context, CallEnvironment* environment, Health* health)
      : AnswerStream(context, environment, NeedsLogin::no), health_(health) {}
  ~HealthWatch() override { health_->unwatch(this); }

  void start() {
    const std::lock_guard lock(mutex_);
    if (!caller_.status.ok()) return end_when_sent(caller_.status.as_not_run());
    if (closing() || finished()) return;
    environment_->answers.await_message(this);
    read(&incoming_);
  }
  // The state may have changed.
  void tell() {
    const std::lock_guard lock(mutex_);
    const bool serving = health_->serving();
    if (std::exchange(told_, serving) != serving) write(answer_of(state_of(serving)));
  }
  void end_when_stopping(const Status& status) override {
    const std::lock_guard lock(mutex_);
    end_when_sent(status);
  }

 private:
  void OnReadDone(bool ok) override {
    read_ended();
    environment_->answers.message_came(this);
    HealthCheckRequest request;
    grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);  // it leaves gRPC's memory soon
    const Status status = ok ? parse_short_message(&message, Health::kRequestBytesMax, &request) : no_message();
    if (status.ok() && is_known(request.service())) {
      health_->watch(std::static_pointer_cast<HealthWatch>(shared_from_this()));
      return tell();
    }
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      write(answer_of(HealthCheckResponse::SERVICE_UNKNOWN));
    } else {
      end_when_sent(status);
    }
  }

  Health* const health_;
  grpc::ByteBuffer incoming_;
  std::optional<bool> told_;
};

void Health::set_serving(bool serving) {
  std::vector<std::shared_ptr<HealthWatch>> watches;
  {
    const std::lock_guard lock(mutex_);
    serving_.store(serving);
    if (serving) has_served_.store(true);
    for (const auto& [watch, life] : watches_) {
      if (std::shared_ptr<HealthWatch> held = life.lock()) watches.push_back(std::move(held));
    }
  }
  for (const auto& watch : watches) watch->tell();
}

void Health::watch(const std::shared_ptr<HealthWatch>& watch) {
  const std::lock_guard lock(mutex_);
  watches_.emplace(watch.get(), watch);
}

void Health::unwatch(HealthWatch* watch) {
  const std::lock_guard lock(mutex_);
  watches_.erase(watch);
}

grpc::ServerGenericBidiReactor* Health::take_check(CallContext* context, CallEnvironment* environment) {
  return std::make_shared<HealthCheck>(context, environment, this)->adopted_by_rpc();
}

grpc::ServerGenericBidiReactor* Health::take_watch(CallContext* context, CallEnvironment* environment) {
  auto stream = std::make_shared<HealthWatch>(context, environment, this);
  stream->adopted_by_rpc();
  stream->start();
  return stream.get();
}

}  // namespace kilokv::server
