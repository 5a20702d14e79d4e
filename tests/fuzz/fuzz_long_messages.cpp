// Messages above 128 KiB (server/service/long_rows.cpp, message_elements.cpp). The server scans such a message before
// it parses it, and decodes long rows one transaction at a time: the long way. It parses a shorter message at once: the
// short way. The target goes both ways with the same bytes, and compares.
//
// The first byte chooses the message. The second says in which pieces it comes, and whether the limits are low, so that
// a short input exceeds them. The rest is the message. The target makes a request long: it puts an unknown field before
// it, or writes a long value in its transaction.
#include "server/service/long_rows.hpp"

#include <google/protobuf/io/coded_stream.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/core/access/access_table.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace kilokv::fuzz {
namespace {

using namespace kilokv::server;
using google::protobuf::io::CodedInputStream;

struct Form {
  std::size_t piece_bytes;
  const engine::TransactionLimits& limits;
};

const engine::TransactionLimits& low_limits() {
  static const engine::TransactionLimits kLimits{
      .guards_max = 8, .operations_max = 8, .range_keys_max = 100, .request_transactions_max = 8};
  return kLimits;
}

grpc::ByteBuffer in_pieces(std::string_view bytes, const Form& form) {
  std::vector<grpc::Slice> slices;
  do {
    const std::string_view piece = bytes.substr(0, form.piece_bytes);
    slices.emplace_back(piece.data(), piece.size());
    bytes.remove_prefix(piece.size());
  } while (!bytes.empty());
  return {slices.data(), slices.size()};
}

std::string varint(std::uint64_t number) {
  std::string out;
  for (; number >= 128; number >>= 7) out += static_cast<char>(number | 128);
  return out + static_cast<char>(number);
}

// A field of bytes, or of a message.
std::string part(unsigned number, std::string_view bytes) {
  return (varint(number << 3 | 2) + varint(bytes.size())).append(bytes);
}

constexpr unsigned kUnknownField = 1000;  // in no message of the protocol

const std::string& long_unknown_field() {
  static const std::string kField = part(kUnknownField, std::string(kShortParseBytes, 'x'));
  return kField;
}

// A transaction, and the same with one more operation, which writes a long value.
std::string with_long_transaction(const std::string& transaction) {
  static const std::string kOperation = [] {
    v1::Transaction message;
    v1::Operation* operation = message.add_else_();
    operation->set_kind(v1::OPERATION_KIND_PUT);
    operation->set_key("k");
    operation->mutable_operand()->set_bytes(std::string(kShortParseBytes, 'x'));
    return message.SerializeAsString();
  }();
  return part(v1::ExecuteBatchRequest::kRowsFieldNumber,
              part(v1::TransactionRows::kTransactionsFieldNumber, transaction + kOperation) +
                  part(v1::TransactionRows::kTransactionsFieldNumber, transaction));
}

auto all_of(const engine::TransactionColumns& c) {
  return std::tie(c.precedence, c.wait_timeout_us, c.guard_end, c.then_end, c.else_end, c.key_id, c.key_end,
                  c.key_bytes, c.guard_kind, c.guard_on_false, c.guard_key, c.guard_other, c.guard_operand, c.op_kind,
                  c.op_operand, c.op_key, c.op_value, c.range_from_end, c.range_to_end, c.range_limit, c.range_bytes,
                  c.value_end, c.value_bytes);
}

// Whether a number on the wire may take five bytes or more. Protobuf's parser refuses such tags and lengths. The scan
// reads them as the 32 low bits.
bool may_have_long_numbers(std::string_view bytes) {
  int run = 0;
  for (const char byte : bytes) {
    run = static_cast<unsigned char>(byte) < 128 ? 0 : run + 1;
    if (run == 4) return true;
  }
  return false;
}

// Groups may be nested 100 deep. Unlike the scan, the parser counts the list of rows around them as one level.
template <class Message>
bool parses_one_level_deeper(const std::string& bytes) {
  CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  input.SetRecursionLimit(CodedInputStream::GetDefaultRecursionLimit() + 1);
  Message message;
  return message.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

// The short way may accept these, and the long way does not: a message with too many fields that are no elements of a
// list; one with rows and columns, of which the parser takes the last; and columns with a group, before such rows.
template <class Message>
bool is_refused_if_long(const Violation& violation, const Message& parsed) {
  if (violation.actual == "more" || violation.actual == "rows and columns") return true;
  return parsed.has_rows() && violation.actual == "malformed bytes" &&
         violation.limit == "a " + v1::TransactionColumns::descriptor()->full_name();
}

// Both ways refuse these, but the short way may name another error: groups, and lists that are too long. The scan finds
// them before it decodes what else may be wrong.
bool is_refused_early(const Violation& violation) {
  return violation.actual == "malformed bytes" || violation.setting == "--request-transactions-max" ||
         violation.setting == "--guards-max" || violation.setting == "--operations-max";
}

// The server takes the long way, because the message is long. Both ways must find the same transactions, the same rest
// of the message, and the same errors.
template <class Message>
void check_request(const std::string& bytes, const Form& form) {
  KILOKV_CHECK(bytes.size() > kShortParseBytes);
  const DecodeContext context{kSecret, form.limits};
  grpc::ByteBuffer buffer = in_pieces(bytes, form);
  Message by_scan, parsed;
  bool rows_left = false;
  engine::TransactionColumns long_columns, short_columns;
  Status long_way = parse_request(&buffer, bytes.size(), &by_scan, &rows_left);
  const bool scanned = long_way.ok();
  if (scanned) long_way = decode_request(by_scan, rows_left, &buffer, context, &long_columns);

  if (!parsed.ParseFromString(bytes)) {
    KILOKV_CHECK(!long_way.ok() || may_have_long_numbers(bytes) || parses_one_level_deeper<Message>(bytes));
    return;
  }
  const Status short_way = decode_transactions(parsed, context, &short_columns);
  if (long_way.message() == short_way.message()) {  // also if both accept the message
    KILOKV_CHECK(long_way.reason() == short_way.reason());
    KILOKV_CHECK(!long_way.ok() || all_of(long_columns) == all_of(short_columns));
  } else {
    KILOKV_CHECK(!long_way.ok() && long_way.violation() != nullptr);
    const Violation& violation = *long_way.violation();
    KILOKV_CHECK(is_refused_if_long(violation, parsed) || (is_refused_early(violation) && !short_way.ok()));
  }
  if (!scanned) return;
  KILOKV_CHECK(by_scan.transactions_case() == parsed.transactions_case());
  if (rows_left) parsed.mutable_rows()->Clear();
  parsed.DiscardUnknownFields();
  by_scan.DiscardUnknownFields();
  KILOKV_CHECK(by_scan.SerializeAsString() == parsed.SerializeAsString());
}

// Whether the lists of a parsed message are within the limits.
bool fits(const v1::Transaction& transaction, const engine::TransactionLimits& limits) {
  return std::cmp_less_equal(transaction.guards_size(), limits.guards_max) &&
         std::cmp_less_equal(transaction.then_size() + transaction.else__size(), limits.operations_max);
}
bool fits(const v1::ExecuteRequest& request, const engine::TransactionLimits& limits) {
  return fits(request.transaction(), limits);
}
bool fits(const v1::UploadReadSetRequest& request, const engine::TransactionLimits&) {
  return std::cmp_less_equal(request.keys_size(), kChunkKeysMax) &&
         std::cmp_less_equal(request.versions_size(), kChunkKeysMax);
}
bool fits(const v1::GetRequest& request, const engine::TransactionLimits& limits) {
  return std::cmp_less_equal(request.keys_size(), limits.operations_max);
}
bool fits(const v1::CancelRequest& request, const engine::TransactionLimits& limits) {
  return std::cmp_less_equal(request.transactions().indices_size(), limits.request_transactions_max);
}
bool fits(const v1::ChangeAccessRequest& request, const engine::TransactionLimits&) {
  const v1::UserChange& user = request.user();
  const int elements = request.grant().read_size() + request.grant().write_size() + request.revoke().read_size() +
                       request.revoke().write_size() + user.add_roles_size() + user.remove_roles_size() +
                       user.add_certificates_size() + user.remove_certificates_size();
  return std::cmp_less_equal(elements, 4 * AccessTable::kRangesMax);
}
bool fits(const v1::TransactionColumns&, const engine::TransactionLimits&) { return true; }

// The count of elements without a parse, against the lists of the parsed message.
template <class Message>
void check_scan(const std::string& bytes, const Form& form) {
  const auto scan = [&](const std::string& message) {
    grpc::ByteBuffer buffer = in_pieces(message, form);
    return check_elements(&buffer, Message::descriptor(), {.transactions = form.limits});
  };
  const Status of_bytes = scan(bytes);
  Message message;
  if (!message.ParseFromString(bytes)) return;
  KILOKV_CHECK(!of_bytes.ok() || fits(message, form.limits));
  // Malformed is only what is so in the parsed message, too: a group. But the parser forgets a group in one of several
  // alternatives, if another one follows.
  if (of_bytes.reason() == ErrorReason::malformed_message && Message::descriptor()->real_oneof_decl_count() == 0) {
    KILOKV_CHECK(!scan(message.SerializeAsString()).ok());
  }
  // Without unknown fields and repeated ones, only the limits decide.
  message.DiscardUnknownFields();
  const std::string known = message.SerializeAsString();
  const Status of_known = scan(known);
  KILOKV_CHECK(of_known.ok() == fits(message, form.limits));
  KILOKV_CHECK(of_known.ok() || of_known.reason() == ErrorReason::out_of_range);
  // A few unknown fields change nothing. Many are refused, and so is a group.
  const std::string unknown = part(kUnknownField, "");
  KILOKV_CHECK(scan(known + unknown).message() == of_known.message());
  std::string many;
  for (int i = 0; i <= kOtherFieldsMax; ++i) many += unknown;
  KILOKV_CHECK(scan(known + many).reason() == ErrorReason::unknown_field);
  const std::string group = varint(kUnknownField << 3 | 3) + varint(kUnknownField << 3 | 4);
  KILOKV_CHECK(scan(known + group).reason() == ErrorReason::malformed_message);
}

// tests/fuzz/seeds.py has the same order.
void check(std::size_t choice, const std::string& bytes, const Form& form) {
  switch (choice % 10) {
    case 0: return check_request<v1::ExecuteBatchRequest>(long_unknown_field() + bytes, form);
    case 1: return check_request<v1::SessionRequest>(long_unknown_field() + bytes, form);
    case 2: return check_request<v1::ExecuteBatchRequest>(with_long_transaction(bytes), form);
    case 3: return check_scan<v1::Transaction>(bytes, form);
    case 4: return check_scan<v1::TransactionColumns>(bytes, form);
    case 5: return check_scan<v1::ExecuteRequest>(bytes, form);
    case 6: return check_scan<v1::UploadReadSetRequest>(bytes, form);
    case 7: return check_scan<v1::GetRequest>(bytes, form);
    case 8: return check_scan<v1::CancelRequest>(bytes, form);
    default: return check_scan<v1::ChangeAccessRequest>(bytes, form);
  }
}

}  // namespace
}  // namespace kilokv::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kilokv;
  std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t choice = fuzz::take_choice(&bytes), how = fuzz::take_choice(&bytes), pieces = how % 128;
  fuzz::check(choice, std::string(bytes),
              {.piece_bytes = pieces == 0 ? std::string_view::npos : 48 + 16 * pieces,
               .limits = how < 128 ? fuzz::limits() : fuzz::low_limits()});
  return 0;
}
