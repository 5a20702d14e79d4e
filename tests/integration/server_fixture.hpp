// The real kilokvd under test, and its protocol without the client library. Thread safety: none.
#pragma once

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "tests/integration/test_server.hpp"
#include "tests/support/error_detail.hpp"

namespace kilokv {

using test::kilokvd;

class Server : public test::TestServer {
 public:
  using TestServer::TestServer;

  std::unique_ptr<v1::KiloKV::Stub> stub() {
    return v1::KiloKV::NewStub(grpc::CreateChannel(endpoint(), grpc::InsecureChannelCredentials()));
  }
};

inline void set_deadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

inline v1::Transaction add(const std::string& key, std::int64_t delta) {
  v1::Transaction transaction;
  v1::Operation* operation = transaction.add_then();
  operation->set_kind(v1::OPERATION_KIND_ADD);
  operation->set_key(key);
  operation->mutable_operand()->set_integer(delta);
  return transaction;
}

}  // namespace kilokv
