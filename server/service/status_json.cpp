// Role: see status_json.hpp. Each field of each section becomes a field of one object, so a new field needs no line
// here.
#include "server/service/status_json.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "server/core/hex.hpp"

namespace kilokv::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// STATE_READY becomes ready.
std::string state_name(const std::string& name) {
  std::string out = name.substr(name.find('_') + 1);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

nlohmann::ordered_json value_of(const Message& section, const FieldDescriptor* field) {
  const google::protobuf::Reflection& values = *section.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return values.GetBool(section, field);
    case FieldDescriptor::CPPTYPE_DOUBLE: return values.GetDouble(section, field);
    case FieldDescriptor::CPPTYPE_UINT32: return values.GetUInt32(section, field);
    case FieldDescriptor::CPPTYPE_UINT64: return values.GetUInt64(section, field);
    case FieldDescriptor::CPPTYPE_ENUM: return state_name(values.GetEnum(section, field)->name());
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = values.GetString(section, field);
      return field->type() == FieldDescriptor::TYPE_BYTES ? hex_of(text) : text;
    }
    default: return nullptr;  // no section has such a field
  }
}

void add_section(const Message& section, nlohmann::ordered_json* out) {
  const google::protobuf::Descriptor* const type = section.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    if (!field->is_repeated()) (*out)[field->name()] = value_of(section, field);
  }
}

}  // namespace

std::string status_json(const v1::StatusResponse& status) {
  nlohmann::ordered_json out;
  const google::protobuf::Descriptor* const type = status.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* const field = type->field(i);
    if (!field->is_repeated()) add_section(status.GetReflection()->GetMessage(status, field), &out);
  }
  for (const auto* texts : {&status.settings(), &status.details()}) {
    for (const v1::NamedText& text : *texts) out[text.name()] = text.text();
  }
  for (const v1::MemoryOwner& owner : status.memory().owners()) {
    out["memory"][owner.name()] = {{"bytes", owner.bytes()}, {"bound_bytes", owner.bound_bytes()}};
  }
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace kilokv::server
