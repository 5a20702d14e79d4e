#include "server/service/message_elements.hpp"

#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "server/core/access/access_table.hpp"

namespace kilokv::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// A limit of the lists with these names. Lists of one kind share it.
struct List {
  std::string_view name;  // in the protocol, without the package
  std::size_t kind;
};
struct Kind {
  const char* field;
  const char* unit;
  const char* setting;
};
constexpr std::array<Kind, 8> kKinds = {{
    {"transactions", " transactions", "--request-transactions-max"},
    {"guards", " guards", "--guards-max"},  // of one transaction
    {"operations", " operations, both lists together", "--operations-max"},
    {"keys", " keys", "--operations-max"},
    {"keys", " keys in one message; send the rest in further ones", ""},
    {"versions", " versions in one message", ""},
    {"transactions.indices", " indices", "--request-transactions-max"},
    {"change", " ranges, roles or names", ""},
}};
constexpr std::array<List, 14> kLists = {{{"TransactionRows.transactions", 0},
                                          {"Transaction.guards", 1},
                                          {"Transaction.then", 2},
                                          {"Transaction.else", 2},
                                          {"GetRequest.keys", 3},
                                          {"UploadReadSetRequest.keys", 4},
                                          {"UploadReadSetRequest.versions", 5},
                                          {"CancelTransactions.indices", 6},
                                          {"RoleRights.read", 7},
                                          {"RoleRights.write", 7},
                                          {"UserChange.add_roles", 7},
                                          {"UserChange.remove_roles", 7},
                                          {"UserChange.add_certificates", 7},
                                          {"UserChange.remove_certificates", 7}}};

constexpr std::size_t kNoKind = kKinds.size();

std::size_t kind_of(const FieldDescriptor& field) {
  constexpr std::string_view kPackage = "kilokv.v1.";
  const std::string_view name = std::string_view(field.full_name()).substr(kPackage.size());
  for (const List& list : kLists) {
    if (list.name == name) return list.kind;
  }
  return kNoKind;
}

// Whether an element of this list can come so. If not, the parse keeps its bytes as those of an unknown field.
bool is_element(const FieldDescriptor& list, WireFormatLite::WireType wire) {
  const auto type = static_cast<WireFormatLite::FieldType>(list.type());
  return wire == WireFormatLite::WireTypeForFieldType(type) ||
         (list.is_packable() && wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

class Walk {
 public:
  explicit Walk(CodedInputStream* input) : input_(input) {}

  Status run(const google::protobuf::Descriptor* type) {
    if (Status status = message(type); !status.ok()) return status;
    return input_->ConsumedEntireMessage() ? Status() : malformed(type);
  }
  const std::array<std::uint64_t, kKinds.size() + 1>& counts() const { return counts_; }

 private:
  Status message(const google::protobuf::Descriptor* type) {
    int others = 0;
    int last_number = -1;
    const FieldDescriptor* field = nullptr;
    std::size_t kind = kNoKind;
    while (const std::uint32_t tag = input_->ReadTag()) {
      if (const int number = WireFormatLite::GetTagFieldNumber(tag); number != last_number) {
        last_number = number;
        field = type->FindFieldByNumber(number);
        kind = field == nullptr ? kNoKind : kind_of(*field);
      }
      const auto wire = WireFormatLite::GetTagWireType(tag);
      // Groups are not in the protocol.
      if (wire == WireFormatLite::WIRETYPE_START_GROUP || wire == WireFormatLite::WIRETYPE_END_GROUP) {
        return malformed(type);
      }
      if (field == nullptr || !field->is_repeated() || !is_element(*field, wire)) {
        if (++others > kOtherFieldsMax) return too_many_fields(type);
      }
      if (field != nullptr && field->message_type() != nullptr && wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        ++counts_[kind];
        if (Status status = part(field->message_type()); !status.ok()) return status;
        continue;
      }
      if (field != nullptr && field->is_packable() && wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!packed(*field, kind)) return malformed(type);
        continue;
      }
      ++counts_[kind];
      if (!WireFormatLite::SkipField(input_, tag)) return malformed(type);
    }
    return {};
  }

  Status part(const google::protobuf::Descriptor* type) {
    std::uint32_t length = 0;
    if (!input_->ReadVarint32(&length)) return malformed(type);
    const CodedInputStream::Limit limit = input_->PushLimit(static_cast<int>(length));
    if (Status status = message(type); !status.ok()) return status;
    if (!input_->ConsumedEntireMessage() || input_->BytesUntilLimit() != 0) return malformed(type);
    input_->PopLimit(limit);
    return {};
  }

  // Counts the elements of a packed list.
  bool packed(const FieldDescriptor& field, std::size_t kind) {
    std::uint32_t length = 0;
    if (!input_->ReadVarint32(&length)) return false;
    switch (field.type()) {
      case FieldDescriptor::TYPE_FIXED32:
      case FieldDescriptor::TYPE_SFIXED32: counts_[kind] += length / 4; return skip(length);
      case FieldDescriptor::TYPE_FIXED64:
      case FieldDescriptor::TYPE_SFIXED64: counts_[kind] += length / 8; return skip(length);
      default: break;
    }
    while (length > 0) {  // each number ends with a byte below 128
      const void* data = nullptr;
      int size = 0;
      if (!input_->GetDirectBufferPointer(&data, &size) || size <= 0) return false;
      size = std::min(size, static_cast<int>(std::min<std::uint32_t>(length, 1u << 30)));
      const std::string_view bytes(static_cast<const char*>(data), static_cast<std::size_t>(size));
      for (const char byte : bytes) counts_[kind] += (static_cast<unsigned char>(byte) < 128) ? 1 : 0;
      if (!input_->Skip(size)) return false;
      length -= static_cast<std::uint32_t>(size);
    }
    return true;
  }

  bool skip(std::uint32_t bytes) { return bytes <= (1u << 30) && input_->Skip(static_cast<int>(bytes)); }

  CodedInputStream* const input_;
  std::array<std::uint64_t, kKinds.size() + 1> counts_{};  // the last one counts what has no limit
};

}  // namespace

Status malformed(const google::protobuf::Descriptor* type) {
  return Status::invalid(
             {.field = "message", .limit = "a " + type->full_name(), .actual = "malformed bytes", .setting = ""})
      .because(ErrorReason::malformed_message);
}

Status too_many_fields(const google::protobuf::Descriptor* type) {
  return Status::invalid({.field = "message",
                          .limit = std::to_string(kOtherFieldsMax) + " fields that are no elements of a list, in a " +
                                   type->full_name(),
                          .actual = "more",
                          .setting = ""})
      .because(ErrorReason::unknown_field);
}

Status check_elements(CodedInputStream* input, const google::protobuf::Descriptor* type, const ElementLimits& limits) {
  Walk walk(input);
  if (Status status = walk.run(type); !status.ok()) return status;
  const engine::TransactionLimits& of = limits.transactions;
  const std::array<std::uint64_t, kKinds.size()> most = {of.request_transactions_max,
                                                         of.guards_max,
                                                         of.operations_max,
                                                         of.operations_max,
                                                         kChunkKeysMax,
                                                         kChunkKeysMax,
                                                         of.request_transactions_max,
                                                         4 * AccessTable::kRangesMax};
  for (std::size_t kind = 0; kind < most.size(); ++kind) {
    if (walk.counts()[kind] <= most[kind]) continue;
    const bool in_transaction = kind == 1 || kind == 2;
    const std::string path = in_transaction ? "transactions[" + std::to_string(limits.transaction) + "]." : "";
    return Status::invalid({.field = path + kKinds[kind].field,
                            .limit = std::to_string(most[kind]) + kKinds[kind].unit,
                            .actual = std::to_string(walk.counts()[kind]) + kKinds[kind].unit,
                            .setting = kKinds[kind].setting})
        .because(ErrorReason::out_of_range);
  }
  return {};
}

Status check_elements(grpc::ByteBuffer* buffer, const google::protobuf::Descriptor* type, const ElementLimits& limits) {
  grpc::ProtoBufferReader reader(buffer);
  if (!reader.status().ok()) return malformed(type);
  CodedInputStream input(&reader);
  return check_elements(&input, type, limits);
}

}  // namespace kilokv::server
