// The work that a stored data directory holds, and the calls that look at it. The program that makes a directory and
// the test that opens it send the same requests: a format is kept if the answers are the same. Thread safety: none.
#pragma once

#include <google/protobuf/text_format.h>
#include <grpcpp/create_channel.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "tests/integration/test_server.hpp"

namespace kilokv::upgrade {

inline constexpr std::uint64_t kRequests = 104;         // numbered from 1
inline constexpr std::uint64_t kBeforeCheckpoint = 88;  // the requests up to this one are in a checkpoint
inline constexpr std::uint64_t kAcknowledged = 8;       // these have no stored results any more
inline constexpr std::uint64_t kHalf = kRequests + 1;   // one of its two transactions is decided, and the other waits
inline constexpr std::size_t kLongValue = 60000;  // bytes; 20 stored results with it are longer than a session record

// A name with a byte that is no UTF-8.
inline std::string key(const std::string& kind, std::uint64_t i) { return kind + "/\xff" + std::to_string(i % 7); }

inline v1::Operation* operation(v1::Transaction* transaction, v1::OperationKind kind, const std::string& name) {
  v1::Operation* added = transaction->add_then();
  added->set_kind(kind);
  added->set_key(name);
  return added;
}

// A transaction of each kind in turn, so that each outcome and each type of value is there.
inline v1::Transaction transaction(std::uint64_t number) {
  v1::Transaction made;
  switch (number % 8) {
    case 0:
      operation(&made, v1::OPERATION_KIND_ADD, key("account", number))->mutable_operand()->set_integer(100);
      break;
    case 1: {
      const std::string bytes = number % 16 == 1 ? std::string() : std::string("\0\xfe\n", 3) + std::to_string(number);
      operation(&made, v1::OPERATION_KIND_PUT, key("bytes", number))->mutable_operand()->set_bytes(bytes);
      break;
    }
    case 2: {  // written, and deleted by the next one
      operation(&made, v1::OPERATION_KIND_PUT, key("gone", number))->mutable_operand()->set_integer(-1);
      break;
    }
    case 3: operation(&made, v1::OPERATION_KIND_DELETE, key("gone", number - 1)); break;
    case 4: {
      v1::Guard* guard = made.add_guards();
      guard->set_kind(v1::GUARD_KIND_GREATER_EQUAL);
      guard->set_key(key("account", number - 4));
      guard->set_integer(1000000);
      operation(&made, v1::OPERATION_KIND_ADD, key("account", number))->mutable_operand()->set_integer(-1000000);
      break;
    }
    case 5: {
      operation(&made, v1::OPERATION_KIND_PUT, "largest")->mutable_operand()->set_integer(INT64_MAX);
      if (number > 8) operation(&made, v1::OPERATION_KIND_ADD, "largest")->mutable_operand()->set_integer(1);
      break;
    }
    case 6: {
      if (number == 6) {
        operation(&made, v1::OPERATION_KIND_PUT, "long")->mutable_operand()->set_bytes(std::string(kLongValue, 'x'));
      } else {
        operation(&made, v1::OPERATION_KIND_GET, "long");
      }
      break;
    }
    default: {
      operation(&made, v1::OPERATION_KIND_GET, "long");
      operation(&made, v1::OPERATION_KIND_ADD, "reads")->mutable_operand()->set_integer(1);
    }
  }
  return made;
}

inline v1::ExecuteRequest request(const std::string& session, std::uint64_t number) {
  v1::ExecuteRequest made;
  made.mutable_id()->set_session(session);
  made.mutable_id()->set_number(number);
  *made.mutable_transaction() = transaction(number);
  return made;
}

// The request of which a crash leaves one half decided: the second transaction waits until somebody opens the gate.
inline v1::ExecuteBatchRequest half_request(const std::string& session) {
  v1::ExecuteBatchRequest made;
  made.mutable_id()->set_session(session);
  made.mutable_id()->set_number(kHalf);
  operation(made.mutable_rows()->add_transactions(), v1::OPERATION_KIND_ADD, "half/done")
      ->mutable_operand()
      ->set_integer(1);
  v1::Transaction* waits = made.mutable_rows()->add_transactions();
  v1::Guard* guard = waits->add_guards();
  guard->set_kind(v1::GUARD_KIND_EXISTS);
  guard->set_on_false(v1::ON_FALSE_WAIT);
  guard->set_key("half/gate");
  waits->set_wait_timeout_us(std::uint64_t{3600} * 1000000);
  operation(waits, v1::OPERATION_KIND_ADD, "half/waited")->mutable_operand()->set_integer(1);
  return made;
}

// A client of a server, with a login.
class Caller {
 public:
  Caller(const std::string& endpoint, std::string token)
      : token_(std::move(token)),
        stub_(v1::KiloKV::NewStub(grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials()))) {}

  template <class Request, class Response>
  grpc::Status call(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) const {
    grpc::ClientContext context;
    prepare(&context);
    return (stub_.get()->*method)(&context, request, response);
  }
  void prepare(grpc::ClientContext* context) const {
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context->set_wait_for_ready(true);
    context->AddMetadata("authorization", "Bearer " + token_);
  }
  v1::KiloKV::Stub& stub() const { return *stub_; }

 private:
  const std::string token_;
  const std::unique_ptr<v1::KiloKV::Stub> stub_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace kilokv::upgrade
