// The traces that clients name: in the metadata of a call, and in a field of each request on a stream.
//
// A malformed traceparent is ignored, as its standard asks: a request must not fail because of its trace. The log says
// so, at most once in ten seconds.
//
// Thread safety: all members.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <string_view>

#include "server/core/clients/client.hpp"
#include "server/core/trace_parent.hpp"
#include "server/service/rare_line.hpp"

namespace kilokv::server {

class Traces {
 public:
  // The trace that a text from this client names; none for an empty text.
  TraceParent read(std::string_view text, const Client& client);
  // The trace that the metadata of a call names.
  TraceParent of(const grpc::ServerContextBase& context, const Client& client);

 private:
  RareLine malformed_{std::chrono::seconds(10)};
};

}  // namespace kilokv::server
