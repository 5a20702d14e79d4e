#include "server/service/status_map.hpp"

#include <cstdlib>

namespace kilokv::server {
namespace {

constexpr char kErrorDetailKey[] = "kilokv-error-bin";

bool fill_detail(const Status& status, v1::ErrorDetail* detail) {
  if (const Violation* violation = status.violation()) {
    detail->set_field(violation->field);
    detail->set_limit(violation->limit);
    detail->set_met(violation->met);
    detail->set_knob(violation->knob);
  }
  if (const auto retry_after_us = status.retry_after_us()) {
    detail->set_retry_after_us(static_cast<std::uint64_t>(*retry_after_us));
  }
  detail->set_not_run(status.not_run());
  return status.violation() != nullptr || status.retry_after_us().has_value() || status.not_run();
}

}  // namespace

grpc::StatusCode to_grpc_code(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return grpc::StatusCode::OK;
    case StatusCode::cancelled: return grpc::StatusCode::CANCELLED;
    case StatusCode::invalid_argument: return grpc::StatusCode::INVALID_ARGUMENT;
    case StatusCode::deadline_exceeded: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case StatusCode::not_found: return grpc::StatusCode::NOT_FOUND;
    case StatusCode::permission_denied: return grpc::StatusCode::PERMISSION_DENIED;
    case StatusCode::resource_exhausted: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case StatusCode::failed_precondition: return grpc::StatusCode::FAILED_PRECONDITION;
    case StatusCode::aborted: return grpc::StatusCode::ABORTED;
    case StatusCode::unimplemented: return grpc::StatusCode::UNIMPLEMENTED;
    case StatusCode::internal: return grpc::StatusCode::INTERNAL;
    case StatusCode::unavailable: return grpc::StatusCode::UNAVAILABLE;
    case StatusCode::data_loss: return grpc::StatusCode::DATA_LOSS;
    case StatusCode::unauthenticated: return grpc::StatusCode::UNAUTHENTICATED;
  }
  std::abort();  // not a value of the enum
}

grpc::Status to_grpc(const Status& status, grpc::ServerContextBase* context) {
  if (status.ok()) return grpc::Status::OK;
  v1::ErrorDetail detail;
  if (fill_detail(status, &detail)) context->AddTrailingMetadata(kErrorDetailKey, detail.SerializeAsString());
  return grpc::Status(to_grpc_code(status.code()), status.message());
}

void fill_error(const Status& status, v1::Error* error) {
  error->set_code(static_cast<std::uint32_t>(to_grpc_code(status.code())));
  error->set_message(status.message());
  v1::ErrorDetail detail;
  if (fill_detail(status, &detail)) *error->mutable_detail() = std::move(detail);
}

}  // namespace kilokv::server
