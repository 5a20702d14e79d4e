// The error detail that the server sends with a refused call, read without the client library. Thread safety: any
// thread, once the call has ended.
#pragma once

#include <grpcpp/client_context.h>

#include "kilokv/v1/kilokv.pb.h"

namespace kilokv {

// The error detail that a call has ended with; an empty one if there is none.
inline v1::ErrorDetail detail_of(const grpc::ClientContext& context) {
  v1::ErrorDetail detail;
  const auto found = context.GetServerTrailingMetadata().find("kilokv-error-bin");
  if (found != context.GetServerTrailingMetadata().end()) {
    detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
  }
  return detail;
}

}  // namespace kilokv
