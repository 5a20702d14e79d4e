// The own logs of gRPC and Protobuf, as lines of ours. Some of their lines quote what a client sent, so each text is
// escaped and cut. A client can cause any number of them, so few are written per second; the next one that is written
// says how many were left out. Thread safety: call it once, before gRPC is used.
#pragma once

namespace kilokv::server {

// GRPC_VERBOSITY and GRPC_TRACE say what gRPC logs, as they do without this.
void take_library_logs();

}  // namespace kilokv::server
