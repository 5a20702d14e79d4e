// Requests of reflection (server/service/reflection.cpp). Each that can be parsed has an answer with the request in it,
// and the files of an answer can be read again.
#include "server/service/reflection.hpp"

#include <google/protobuf/descriptor.pb.h>

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  grpc::reflection::v1alpha::ServerReflectionRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto response = kilokv::server::reflect(request);
  KILOKV_CHECK(response.message_response_case() !=
               grpc::reflection::v1alpha::ServerReflectionResponse::MESSAGE_RESPONSE_NOT_SET);
  KILOKV_CHECK(response.original_request().message_request_case() == request.message_request_case());
  for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
    google::protobuf::FileDescriptorProto file;
    KILOKV_CHECK(file.ParseFromString(bytes));
    KILOKV_CHECK(!file.name().empty());
  }
  return 0;
}
