// Role: see reflection.hpp.
#include "server/service/reflection.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpc/health/v1/health.grpc.pb.h>
#include <grpc/reflection/v1alpha/reflection.grpc.pb.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "server/core/access/access_check.hpp"
#include "server/core/one_line.hpp"
#include "server/service/answer_stream.hpp"
#include "server/service/message_buffer.hpp"

namespace kilokv::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using ReflectionRequest = grpc::reflection::v1alpha::ServerReflectionRequest;
using ReflectionResponse = grpc::reflection::v1alpha::ServerReflectionResponse;

void set_error(grpc::StatusCode code, const std::string& message, ReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(message);
}

void set_missing(const std::string& what, ReflectionResponse* response) {
  set_error(grpc::NOT_FOUND, "this server has no " + what, response);
}

// The file and all that it imports, each once.
void add_file(const FileDescriptor* file, std::set<const FileDescriptor*>* added, ReflectionResponse* response) {
  if (!added->insert(file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  response->mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file->dependency_count(); ++i) add_file(file->dependency(i), added, response);
}

void set_file(const FileDescriptor* file, const std::string& what, ReflectionResponse* response) {
  if (file == nullptr) return set_missing(what, response);
  std::set<const FileDescriptor*> added;
  add_file(file, &added, response);
}

const FieldDescriptor* extension_of(const grpc::reflection::v1alpha::ExtensionRequest& request) {
  const DescriptorPool* const pool = DescriptorPool::generated_pool();
  const Descriptor* const type = pool->FindMessageTypeByName(request.containing_type());
  return type == nullptr ? nullptr : pool->FindExtensionByNumber(type, request.extension_number());
}

void set_extension_numbers(const std::string& name, ReflectionResponse* response) {
  const DescriptorPool* const pool = DescriptorPool::generated_pool();
  const Descriptor* const type = pool->FindMessageTypeByName(name);
  if (type == nullptr) return set_missing("message \"" + one_line(name) + '"', response);
  std::vector<const FieldDescriptor*> extensions;
  pool->FindAllExtensions(type, &extensions);
  auto* const numbers = response->mutable_all_extension_numbers_response();
  numbers->set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions) numbers->add_extension_number(extension->number());
}

void set_services(ReflectionResponse* response) {
  for (const char* name :
       {v1::KiloKV::service_full_name(), grpc::reflection::v1alpha::ServerReflection::service_full_name(),
        grpc::health::v1::Health::service_full_name()}) {
    response->mutable_list_services_response()->add_service()->set_name(name);
  }
}

class ReflectionStream final : public AnswerStream {
 public:
  ReflectionStream(CallContext* context, CallEnvironment* environment) : AnswerStream(context, environment) {}

  void start() {
    const std::lock_guard lock(mutex_);
    if (!caller_.status.ok()) return end_when_sent(caller_.status.as_not_run());
    read(&incoming_);
  }
  void end_when_stopping(const kilokv::Status& status) override {
    const std::lock_guard lock(mutex_);
    end_when_sent(status);
  }
  void end_without_login(const AccessTable& table) override {
    if (caller_.login == nullptr || table.rights(*caller_.login) != nullptr) return;
    const std::lock_guard lock(mutex_);
    end_when_sent(login_gone(caller_.login->user));
  }

 private:
  void OnReadDone(bool ok) override {
    read_ended();
    const std::lock_guard lock(mutex_);
    if (finished() || closing()) return;
    if (!ok) return finish_when_sent(grpc::Status::OK);
    ReflectionRequest request;
    grpc::ByteBuffer message = CallEnvironment::take_message(caller_, &incoming_);
    kilokv::Status status = check_login();
    if (status.ok()) status = parse_short_message(&message, kReflectionBytesMax, &request);
    if (!status.ok()) return end_when_sent(status);
    write(serialize_message(reflect(request)));
  }

  void on_sent() override {
    if (!finished() && !closing()) read(&incoming_);
  }

  // The login may have ended since the stream began.
  kilokv::Status check_login() const {
    if (caller_.login == nullptr) return {};
    const Result<Database*> database = environment_->gate.get();
    if (!database.ok()) return database.status();
    return rights_at(*(*database)->access().latest(), *caller_.login, (*database)->time_of_day()).status();
  }

  grpc::ByteBuffer incoming_;  // while a read is in progress, gRPC fills it
};

}  // namespace

ReflectionResponse reflect(const ReflectionRequest& request) {
  const DescriptorPool* const pool = DescriptorPool::generated_pool();
  ReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ReflectionRequest::kFileByFilename:
      set_file(pool->FindFileByName(request.file_by_filename()), "file \"" + one_line(request.file_by_filename()) + '"',
               &response);
      break;
    case ReflectionRequest::kFileContainingSymbol:
      set_file(pool->FindFileContainingSymbol(request.file_containing_symbol()),
               "symbol \"" + one_line(request.file_containing_symbol()) + '"', &response);
      break;
    case ReflectionRequest::kFileContainingExtension: {
      const FieldDescriptor* const extension = extension_of(request.file_containing_extension());
      set_file(extension == nullptr ? nullptr : extension->file(), "such extension", &response);
      break;
    }
    case ReflectionRequest::kAllExtensionNumbersOfType:
      set_extension_numbers(request.all_extension_numbers_of_type(), &response);
      break;
    case ReflectionRequest::kListServices: set_services(&response); break;
    case ReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      set_error(grpc::INVALID_ARGUMENT, "the request asks for nothing that this server knows", &response);
      break;
  }
  return response;
}

grpc::ServerGenericBidiReactor* take_reflection(CallContext* context, CallEnvironment* environment) {
  auto stream = std::make_shared<ReflectionStream>(context, environment);
  stream->adopted_by_rpc();
  stream->start();
  return stream.get();
}

}  // namespace kilokv::server
