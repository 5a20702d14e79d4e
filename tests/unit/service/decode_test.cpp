#include "server/service/decode.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <vector>

#include "tests/unit/service/messages.hpp"

namespace kilokv::server {
namespace {

using test::Generator;

v1::Transaction with_then(v1::OperationKind kind, const std::string& key) {
  v1::Transaction transaction;
  transaction.add_then()->set_kind(kind);
  transaction.mutable_then(0)->set_key(key);
  return transaction;
}

v1::Transaction with_guard(v1::GuardKind kind, const std::string& key) {
  v1::Transaction transaction = with_then(v1::OPERATION_KIND_GET, "k");
  transaction.add_guards()->set_kind(kind);
  transaction.mutable_guards(0)->set_key(key);
  return transaction;
}

template <class Message>
Status try_decode(const Message& message) {
  engine::TransactionColumns columns;
  return decode(message, test::kContext, &columns);
}

// Requires a refusal that names `field` and `setting`.
void expect_refused(const Status& status, const std::string& field, const std::string& limit, const std::string& actual,
                    const std::string& setting = "") {
  ASSERT_EQ(status.code(), StatusCode::invalid_argument) << status.message();
  ASSERT_NE(status.violation(), nullptr);
  EXPECT_EQ(status.violation()->field, field);
  EXPECT_NE(status.violation()->limit.find(limit), std::string::npos) << status.violation()->limit;
  EXPECT_EQ(status.violation()->actual, actual);
  EXPECT_EQ(status.violation()->setting, setting);
}

TEST(DecodeRows, Transfer) {
  engine::TransactionColumns columns;
  ASSERT_TRUE(decode(test::transfer("from", "to", 30), test::kContext, &columns).ok());
  ASSERT_EQ(columns.size(), 1u);
  ASSERT_EQ(columns.guard_kind.size(), 1u);
  EXPECT_EQ(columns.guard_kind[0], static_cast<std::uint8_t>(engine::GuardKind::greater_equal));
  EXPECT_EQ(columns.key(columns.guard_key[0]), "from");
  EXPECT_EQ(columns.guard_operand[0], 30);
  ASSERT_EQ(columns.op_kind.size(), 2u);
  EXPECT_EQ(columns.key(columns.op_key[1]), "to");
  EXPECT_EQ(columns.op_value[0], -30);
  EXPECT_EQ(columns.key_id[columns.op_key[1]], engine::hash_key("to", test::kSecret));
}

TEST(DecodeRows, RefusesUnknownKinds) {
  expect_refused(try_decode(with_guard(static_cast<v1::GuardKind>(99), "k")), "transactions[0].guards[0].kind",
                 "1 to 14", "99");
  expect_refused(try_decode(with_guard(v1::GUARD_KIND_UNSPECIFIED, "k")), "transactions[0].guards[0].kind", "1 to 14",
                 "0");
  expect_refused(try_decode(with_then(static_cast<v1::OperationKind>(8), "k")), "transactions[0].then[0].kind",
                 "1 to 7", "8");
  v1::Transaction transaction = with_guard(v1::GUARD_KIND_EXISTS, "k");
  transaction.mutable_guards(0)->set_on_false(static_cast<v1::OnFalse>(2));
  expect_refused(try_decode(transaction), "transactions[0].guards[0].on_false", "ON_FALSE_WAIT", "2");
}

TEST(DecodeRows, RefusesOperandsThatDoNotFit) {
  v1::Transaction add = with_then(v1::OPERATION_KIND_ADD, "k");
  expect_refused(try_decode(add), "transactions[0].then[0].operand", "OPERATION_KIND_ADD", "not set");
  add.mutable_then(0)->mutable_operand()->set_bytes("x");
  expect_refused(try_decode(add), "transactions[0].then[0].operand", "other than bytes", "bytes");
  add.mutable_then(0)->mutable_operand()->set_commit_version(false);
  expect_refused(try_decode(add), "transactions[0].then[0].operand.commit_version", "true", "false");

  v1::Transaction get = with_then(v1::OPERATION_KIND_GET, "k");
  get.mutable_then(0)->mutable_operand()->set_integer(1);
  expect_refused(try_decode(get), "transactions[0].then[0].operand", "no operand", "set");

  v1::Transaction guard = with_guard(v1::GUARD_KIND_LESS, "k");
  expect_refused(try_decode(guard), "transactions[0].guards[0].operand", "integer or other_key", "not set");
  guard.mutable_guards(0)->set_version(1);
  expect_refused(try_decode(guard), "transactions[0].guards[0].operand", "GUARD_KIND_LESS", "version");
  guard = with_guard(v1::GUARD_KIND_EXISTS, "k");
  guard.mutable_guards(0)->set_integer(1);
  expect_refused(try_decode(guard), "transactions[0].guards[0].operand", "no operand", "integer");
  constexpr std::uint64_t kTimeMax = std::numeric_limits<std::int64_t>::max();
  guard = with_guard(v1::GUARD_KIND_TIME_AFTER, "");
  expect_refused(try_decode(guard), "transactions[0].guards[0].operand", "time_us or a key", "not set");
  guard.mutable_guards(0)->set_integer(1);
  expect_refused(try_decode(guard), "transactions[0].guards[0].operand", "time_us or a key", "integer");
  guard.mutable_guards(0)->set_time_us(kTimeMax + 1);
  expect_refused(try_decode(guard), "transactions[0].guards[0].time_us", std::to_string(kTimeMax),
                 std::to_string(kTimeMax + 1));
  guard.mutable_guards(0)->set_time_us(kTimeMax);
  EXPECT_TRUE(try_decode(guard).ok());
  guard.mutable_guards(0)->set_key("k");
  expect_refused(try_decode(guard), "transactions[0].guards[0].operand", "either a key or time_us", "time_us");
  guard = with_guard(v1::GUARD_KIND_TIME_BEFORE, "k");
  EXPECT_TRUE(try_decode(guard).ok());
  guard.mutable_guards(0)->set_on_false(v1::ON_FALSE_WAIT);
  expect_refused(try_decode(guard), "transactions[0].guards[0].on_false", "never makes `time_before` true", "WAIT (1)");
  guard = with_guard(v1::GUARD_KIND_UNCHANGED, "k");
  guard.mutable_guards(0)->set_version(kVersionMax + 1);
  expect_refused(try_decode(guard), "transactions[0].guards[0].version", std::to_string(kVersionMax),
                 std::to_string(kVersionMax + 1));
}

// A list of every kind of operation. The PUT or ADD at kUser may name the GETs at kFirstGet and kSecondGet, and nothing
// else.
enum MixedOperation : std::uint32_t {
  kFirstGet,
  kPut,
  kAdd,
  kDelete,
  kRangeGet,
  kDeleteRange,
  kSecondGet,
  kUser,
  kLateGet,
  kMixedOperations
};

struct User {
  v1::OperationKind kind;
  bool negated;
};
constexpr User kUsers[] = {{v1::OPERATION_KIND_PUT, false},
                           {v1::OPERATION_KIND_PUT, true},
                           {v1::OPERATION_KIND_ADD, false},
                           {v1::OPERATION_KIND_ADD, true}};

using OperationList = google::protobuf::RepeatedPtrField<v1::Operation>;

void add_mixed_list(User user, std::uint32_t named, OperationList* list) {
  for (const v1::OperationKind kind :
       {v1::OPERATION_KIND_GET, v1::OPERATION_KIND_PUT, v1::OPERATION_KIND_ADD, v1::OPERATION_KIND_DELETE,
        v1::OPERATION_KIND_RANGE_GET, v1::OPERATION_KIND_DELETE_RANGE, v1::OPERATION_KIND_GET, user.kind,
        v1::OPERATION_KIND_GET}) {
    v1::Operation* operation = list->Add();
    operation->set_kind(kind);
    if (kind == v1::OPERATION_KIND_RANGE_GET || kind == v1::OPERATION_KIND_DELETE_RANGE) {
      operation->mutable_range()->set_from("a");
      operation->set_limit(1);
      continue;
    }
    operation->set_key("k");
    if (list->size() == kUser + 1) {
      v1::Operand* operand = operation->mutable_operand();
      user.negated ? operand->set_get_negated(named) : operand->set_get(named);
    } else if (kind == v1::OPERATION_KIND_PUT || kind == v1::OPERATION_KIND_ADD) {
      operation->mutable_operand()->set_integer(1);
    }
  }
}

// Transaction 1 has the mixed list, and its other list, like those of the transactions around it, consists of GETs:
// whoever looks in a wrong list finds one.
v1::TransactionRows with_mixed_list(bool in_else, User user, std::uint32_t named) {
  v1::TransactionRows rows;
  for (int t = 0; t < 3; ++t) {
    v1::Transaction* transaction = rows.add_transactions();
    for (const bool is_else : {false, true}) {
      OperationList* list = is_else ? transaction->mutable_else_() : transaction->mutable_then();
      if (t == 1 && is_else == in_else) {
        add_mixed_list(user, named, list);
        continue;
      }
      for (std::uint32_t i = 0; i < 2 * kMixedOperations; ++i) {
        *list->Add() = with_then(v1::OPERATION_KIND_GET, "k").then(0);
      }
    }
  }
  return rows;
}

void expect_operand_refused(const Status& status, bool in_else, std::int64_t named) {
  expect_refused(status, std::string("transactions[1].") + (in_else ? "else" : "then") + "[7].operand.get",
                 "the index of an earlier GET of the same list", std::to_string(named));
}

TEST(DecodeRows, AnOperandNamesAnEarlierGetOfItsListAndNothingElse) {
  std::vector<std::uint32_t> names = {0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
  for (std::uint32_t name = 0; name < 8 * kMixedOperations; ++name) names.push_back(name);
  for (const bool in_else : {false, true}) {
    for (const User user : kUsers) {
      for (const std::uint32_t name : names) {
        const Status status = try_decode(with_mixed_list(in_else, user, name));
        if (name == kFirstGet || name == kSecondGet) {
          EXPECT_TRUE(status.ok()) << status.message();
        } else {
          expect_operand_refused(status, in_else, name);
        }
      }
    }
  }
}

TEST(DecodeRows, RefusesKeysAndRangesThatDoNotFit) {
  v1::Transaction range_get = with_then(v1::OPERATION_KIND_RANGE_GET, "k");
  expect_refused(try_decode(range_get), "transactions[0].then[0].range", "OPERATION_KIND_RANGE_GET", "not set");
  range_get.mutable_then(0)->mutable_range()->set_from("a");
  expect_refused(try_decode(range_get), "transactions[0].then[0].key", "no key", "set");
  v1::Transaction get = with_then(v1::OPERATION_KIND_GET, "k");
  get.mutable_then(0)->mutable_range()->set_from("a");
  expect_refused(try_decode(get), "transactions[0].then[0].range", "no range", "set");
  get = with_then(v1::OPERATION_KIND_GET, "k");
  get.mutable_then(0)->set_limit(5);
  expect_refused(try_decode(get), "transactions[0].then[0].limit", "0 for", "5");
}

TEST(DecodeRows, RefusesWhatIsBeyondALimit) {
  expect_refused(try_decode(with_then(v1::OPERATION_KIND_GET, std::string(2048, 'x'))), "transactions[0].then[0].key",
                 "1024 bytes", "2048 bytes", "--key-bytes-max");
  expect_refused(try_decode(with_then(v1::OPERATION_KIND_GET, "")), "transactions[0].then[0].key", "1024 bytes",
                 "0 bytes", "--key-bytes-max");
  EXPECT_EQ(try_decode(v1::Transaction()).code(), StatusCode::invalid_argument);
  EXPECT_EQ(try_decode(v1::TransactionRows()).code(), StatusCode::invalid_argument);

  v1::Transaction many;
  for (int i = 0; i < 10000; ++i) *many.add_then() = with_then(v1::OPERATION_KIND_GET, "k").then(0);
  const Status status = try_decode(many);
  ASSERT_NE(status.violation(), nullptr);
  EXPECT_EQ(status.violation()->setting, "--operations-max");
  EXPECT_EQ(status.violation()->actual, "10000 operations");

  v1::Transaction transaction = test::transfer("a", "b", 1);
  transaction.set_precedence(256);
  expect_refused(try_decode(transaction), "transactions[0].precedence", "255", "256");
  transaction.set_precedence(255);
  transaction.set_wait_timeout_us(~std::uint64_t{0});
  EXPECT_EQ(try_decode(transaction).violation()->setting, "--wait-timeout-max");
}

TEST(DecodeRows, NamesTheTransaction) {
  v1::TransactionRows rows;
  for (int i = 0; i < 4; ++i) *rows.add_transactions() = test::transfer("a", "b", 1);
  rows.mutable_transactions(3)->add_else_()->set_kind(v1::OPERATION_KIND_UNSPECIFIED);
  expect_refused(try_decode(rows), "transactions[3].else[0].kind", "1 to 7", "0");
}

// A newer client may send a part that this server would have to heed.
TEST(Decode, RefusesPartsThatItDoesNotKnow) {
  const auto add_unknown = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(1000, 1);
  };
  const auto expect_refused = [](const auto& message, const std::string& field) {
    engine::TransactionColumns columns;
    const Status status = decode(message, test::kContext, &columns);
    ASSERT_FALSE(status.ok()) << field;
    EXPECT_EQ(status.reason(), ErrorReason::unknown_field) << status.message();
    EXPECT_EQ(status.violation()->field, field);
  };
  v1::Transaction whole;
  v1::Guard* guard = whole.add_guards();
  guard->set_kind(v1::GUARD_KIND_RANGE_UNCHANGED);
  guard->set_version(1);
  guard->mutable_range()->set_from("a");
  v1::Operation* put = whole.add_else_();
  put->set_kind(v1::OPERATION_KIND_PUT);
  put->set_key("k");
  put->mutable_operand()->set_integer(1);
  engine::TransactionColumns columns;
  ASSERT_TRUE(decode(whole, test::kContext, &columns).ok());
  for (const auto& [part, field] :
       std::vector<std::pair<std::function<google::protobuf::Message*(v1::Transaction*)>, std::string>>{
           {[](v1::Transaction* t) { return t; }, "transactions[0]"},
           {[](v1::Transaction* t) { return t->mutable_guards(0); }, "transactions[0].guards[0]"},
           {[](v1::Transaction* t) { return t->mutable_guards(0)->mutable_range(); },
            "transactions[0].guards[0].range"},
           {[](v1::Transaction* t) { return t->mutable_else_(0); }, "transactions[0].else[0]"},
           {[](v1::Transaction* t) { return t->mutable_else_(0)->mutable_operand(); },
            "transactions[0].else[0].operand"}}) {
    v1::Transaction changed = whole;
    add_unknown(part(&changed));
    expect_refused(changed, field);
  }
  v1::TransactionColumns message = test::to_message(columns);
  add_unknown(&message);
  expect_refused(message, "columns");
}

TEST(DecodeColumns, SayTheSameAsRows) {
  const std::uint64_t seed = std::random_device{}();
  Generator generator(seed);
  for (int round = 0; round < 500; ++round) {
    const v1::TransactionRows rows = test::random_rows(&generator, 1 + round % 9);
    engine::TransactionColumns from_rows, from_columns;
    Status status = decode(rows, test::kContext, &from_rows);
    ASSERT_TRUE(status.ok()) << status.message() << " seed " << seed << " round " << round;
    status = decode(test::to_message(from_rows), test::kContext, &from_columns);
    ASSERT_TRUE(status.ok()) << status.message() << " seed " << seed << " round " << round;
    ASSERT_TRUE(test::equal(from_rows, from_columns)) << "seed " << seed << " round " << round;
  }
}

// Two transfers, every column that may be left out left out, keys of one length.
v1::TransactionColumns compact_columns() {
  engine::TransactionColumns columns;
  v1::TransactionRows rows;
  for (int i = 0; i < 2; ++i) *rows.add_transactions() = test::transfer("aaaa", "bbbb", 1);
  EXPECT_TRUE(decode(rows, test::kContext, &columns).ok());
  v1::TransactionColumns message = test::to_message(columns);
  message.clear_else_ends();
  message.clear_precedence();
  message.clear_wait_timeout_us();
  message.clear_expire_runs_else();
  message.clear_key_ends();
  message.set_key_length(4);
  message.clear_guard_on_false();
  message.clear_guard_other_key();
  message.clear_operation_operand();
  return message;
}

TEST(DecodeColumns, FillsWhatIsLeftOut) {
  engine::TransactionColumns expected, columns;
  v1::TransactionRows rows;
  for (int i = 0; i < 2; ++i) *rows.add_transactions() = test::transfer("aaaa", "bbbb", 1);
  ASSERT_TRUE(decode(rows, test::kContext, &expected).ok());
  const Status status = decode(compact_columns(), test::kContext, &columns);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(test::equal(expected, columns));
}

TEST(DecodeColumns, RefusesRaggedColumns) {
  struct Case {
    const char* field;
    std::function<void(v1::TransactionColumns*)> spoil;
  };
  for (const Case& c : {Case{"columns.then_ends", [](auto* m) { m->add_then_ends(9); }},
                        Case{"columns.else_ends", [](auto* m) { m->add_else_ends(2); }},
                        Case{"columns.precedence", [](auto* m) { m->set_precedence("x"); }},
                        Case{"columns.wait_timeout_us", [](auto* m) { m->add_wait_timeout_us(1); }},
                        Case{"columns.expire_runs_else", [](auto* m) { m->set_expire_runs_else("x"); }},
                        Case{"columns.guard_key", [](auto* m) { m->mutable_guard_key()->RemoveLast(); }},
                        Case{"columns.guard_other_key", [](auto* m) { m->add_guard_other_key(0); }},
                        Case{"columns.operation_value", [](auto* m) { m->add_operation_value(1); }},
                        Case{"columns.operation_operand", [](auto* m) { m->set_operation_operand("xx"); }},
                        Case{"columns.range_from_ends", [](auto* m) { m->add_range_limit(1); }},
                        Case{"columns.key_ends", [](auto* m) { m->add_key_ends(4); }},
                        Case{"columns.key_bytes", [](auto* m) { m->mutable_key_bytes()->push_back('x'); }},
                        Case{"columns.value_ends", [](auto* m) { m->add_value_ends(4); }}}) {
    v1::TransactionColumns message = compact_columns();
    c.spoil(&message);
    const Status status = try_decode(message);
    ASSERT_EQ(status.code(), StatusCode::invalid_argument) << c.field;
    EXPECT_EQ(status.violation()->field, c.field) << status.message();
  }
}

TEST(DecodeColumns, RefusesBadValues) {
  v1::TransactionColumns message = compact_columns();
  message.set_operation_key(1, 4000000000u);
  EXPECT_EQ(try_decode(message).code(), StatusCode::invalid_argument);
  message = compact_columns();
  message.mutable_guard_kind()->at(1) = 77;
  EXPECT_NE(try_decode(message).message().find("transactions[1].guards[0].kind"), std::string::npos);
  message = compact_columns();
  message.set_then_ends(0, 0xFFFFFFFF);
  EXPECT_EQ(try_decode(message).code(), StatusCode::invalid_argument);
  message = compact_columns();
  message.add_wait_timeout_us(~std::uint64_t{0});
  message.add_wait_timeout_us(0);
  EXPECT_EQ(try_decode(message).violation()->setting, "--wait-timeout-max");
  message = compact_columns();
  message.set_expire_runs_else(std::string{'\1', '\2'});
  expect_refused(try_decode(message), "transactions[1].expire_runs_else", "0 or 1", "2");
}

TEST(DecodeColumns, AnOperandNamesAnEarlierGetOfItsListAndNothingElse) {
  constexpr std::int64_t k32Bits = std::int64_t{1} << 32;
  std::vector<std::int64_t> names = {-k32Bits, k32Bits + kFirstGet, k32Bits + kSecondGet,
                                     std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::int64_t>::max()};
  for (std::int64_t name = -4 * std::int64_t{kMixedOperations}; name < 8 * std::int64_t{kMixedOperations}; ++name) {
    names.push_back(name);
  }
  for (const bool in_else : {false, true}) {
    for (const User user : kUsers) {
      engine::TransactionColumns columns;
      ASSERT_TRUE(decode(with_mixed_list(in_else, user, kFirstGet), test::kContext, &columns).ok());
      v1::TransactionColumns message = test::to_message(columns);
      const std::uint32_t list_begin = in_else ? columns.then_end[1] : columns.then_begin(1);
      for (const std::int64_t name : names) {
        message.set_operation_value(static_cast<int>(list_begin + kUser), name);
        const Status status = try_decode(message);
        if (name == kFirstGet || name == kSecondGet) {
          EXPECT_TRUE(status.ok()) << status.message();
        } else {
          expect_operand_refused(status, in_else, name);
        }
      }
    }
  }
}

// docs/columnar-layout.md shows a message byte by byte: it must say what the page says that it says.
TEST(DecodeColumns, TheDocumentedExample) {
  std::ifstream file(KILOKV_DOCS_DIR "/columnar-layout.md");
  std::string line, bytes;
  while (std::getline(file, line) && line != "```hex") {
  }
  while (std::getline(file, line) && line != "```") {
    std::istringstream tokens(line);
    for (std::string token; tokens >> token;) bytes.push_back(static_cast<char>(std::stoi(token, nullptr, 16)));
  }
  EXPECT_EQ(bytes.size(), 100u);
  v1::TransactionColumns message;
  ASSERT_TRUE(message.ParseFromString(bytes));
  engine::TransactionColumns columns;
  const Status status = decode(message, test::kContext, &columns);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns.guard_kind[0], static_cast<std::uint8_t>(engine::GuardKind::greater_equal));
  EXPECT_EQ(columns.key(columns.guard_key[0]), "alice");
  EXPECT_EQ(columns.guard_operand[0], 30);
  EXPECT_EQ(columns.op_kind[2], static_cast<std::uint8_t>(engine::OpKind::get));
  EXPECT_EQ(columns.key(columns.op_key[2]), "carol");
  EXPECT_EQ(columns.op_value[0], -30);
}

// Changes one column of the message: an element, or its length.
void spoil_column(Generator* generator, v1::TransactionColumns* message) {
  const auto* reflection = message->GetReflection();
  const auto* descriptor = message->GetDescriptor();
  const auto* field = descriptor->field(static_cast<int>((*generator)() % descriptor->field_count()));
  const std::uint64_t odd[] = {0, 1, 2, 3, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (*generator)()};
  const std::uint64_t value = odd[(*generator)() % std::size(odd)];
  if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
    std::string bytes = reflection->GetString(*message, field);
    if (!bytes.empty() && (*generator)() % 3 != 0) {
      bytes[(*generator)() % bytes.size()] = static_cast<char>(value);
    } else {
      bytes.resize((*generator)() % (bytes.size() + 3));
    }
    reflection->SetString(message, field, bytes);
  } else if (!field->is_repeated()) {
    message->set_key_length(static_cast<std::uint32_t>(value));
  } else if (const int size = reflection->FieldSize(*message, field); size > 0 && (*generator)() % 3 != 0) {
    const int i = static_cast<int>((*generator)() % static_cast<std::uint64_t>(size));
    switch (field->cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_UINT32:
        reflection->SetRepeatedUInt32(message, field, i, static_cast<std::uint32_t>(value));
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_UINT64:
        reflection->SetRepeatedUInt64(message, field, i, value);
        break;
      default: reflection->SetRepeatedInt64(message, field, i, static_cast<std::int64_t>(value));
    }
  } else if (size > 0) {
    reflection->RemoveLast(message, field);
  }
}

// Whatever was accepted must satisfy every invariant; reading all of it must stay in bounds (run under asan).
void use_everything(const engine::TransactionColumns& columns) {
  ASSERT_TRUE(engine::validate(columns, test::kLimits).ok());
  engine::TransactionColumns copy;
  copy.append(columns, 0, columns.size());
  for (std::size_t t = 0; t < columns.size(); ++t) {
    engine::TransactionColumns one;
    engine::unpack_transaction(engine::pack_transaction(copy, t), &one);
    ASSERT_EQ(one.size(), 1u);
  }
}

TEST(DecodeHostile, ColumnsNeverReadOutOfBounds) {
  const std::uint64_t seed = std::random_device{}();
  Generator generator(seed);
  std::uint64_t accepted = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    engine::TransactionColumns valid;
    ASSERT_TRUE(decode(test::random_rows(&generator, 1 + round % 3), test::kContext, &valid).ok());
    const v1::TransactionColumns message = test::to_message(valid);
    for (int variant = 0; variant < 30; ++variant) {
      v1::TransactionColumns spoiled = message;
      for (int i = 0; i <= variant % 3; ++i) spoil_column(&generator, &spoiled);
      engine::TransactionColumns columns;
      const bool ok = decode(spoiled, test::kContext, &columns).ok();
      ++(ok ? accepted : refused);
      if (ok) use_everything(columns);
    }
  }
  EXPECT_GT(accepted, 1000u) << "seed " << seed;
  EXPECT_GT(refused, 1000u) << "seed " << seed;
}

TEST(DecodeHostile, RandomBytesOfRowsAndColumns) {
  const std::uint64_t seed = std::random_device{}();
  Generator generator(seed);
  std::uint64_t parsed = 0;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    v1::ExecuteBatchRequest request;
    *request.mutable_rows() = test::random_rows(&generator, 1 + round % 3);
    if (round % 2 == 1) {
      engine::TransactionColumns columns;
      ASSERT_TRUE(decode(request.rows(), test::kContext, &columns).ok());
      *request.mutable_columns() = test::to_message(columns);
    }
    const std::string bytes = request.SerializeAsString();
    for (int variant = 0; variant < 20; ++variant) {
      std::string spoiled = bytes;
      for (int i = 0; i <= variant % 4; ++i) spoiled[generator() % spoiled.size()] = static_cast<char>(generator());
      if (variant % 5 == 0) spoiled.resize(generator() % (spoiled.size() + 1));
      v1::ExecuteBatchRequest again;
      if (!again.ParseFromString(spoiled)) continue;
      ++parsed;
      engine::TransactionColumns columns;
      if (decode_transactions(again, test::kContext, &columns).ok()) use_everything(columns);
    }
  }
  EXPECT_GT(parsed, 1000u) << "seed " << seed;
}

}  // namespace
}  // namespace kilokv::server
