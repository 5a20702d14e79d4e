// The contents of a Batch: the columnar message itself. So columns are sent with one serialization and no conversion.
// Invariant between calls: an optional column is complete, or empty because all its elements have the default.
// Thread safety: none; one thread builds a Batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kilokv/batch.hpp"
#include "kilokv/v1/columns.pb.h"
#include "kilokv/v1/transaction.pb.h"

namespace kilokv::client {

inline constexpr std::uint32_t kNoKey = 0xFFFFFFFFu;

struct Batch::Columns {
  v1::TransactionColumns message;
  std::string misuse;           // the first misuse by the caller; empty: none
  bool open = false;            // between begin() and end()
  bool in_else = false;         // after otherwise()
  std::uint8_t precedence = 0;  // of the open transaction
  std::uint64_t wait_timeout_us = 0;
  bool expire_runs_else = false;
  int list_begin = 0;          // first operation of the open list
  std::uint32_t then_end = 0;  // of the open transaction, set if in_else
  std::uint32_t keys = 0;

  int size() const { return message.guard_ends_size(); }
  std::uint32_t guard_begin(int t) const { return t == 0 ? 0 : message.guard_ends(t - 1); }
  std::uint32_t then_begin(int t) const { return t == 0 ? 0 : else_end(t - 1); }
  std::uint32_t else_end(int t) const {
    return message.else_ends_size() == 0 ? message.then_ends(t) : message.else_ends(t);
  }
  std::string_view key(std::uint32_t i) const;
  std::string_view value(std::int64_t i) const;
  std::string_view range_from(std::uint32_t i) const;
  std::string_view range_to(std::uint32_t i) const;
  std::uint8_t transaction_precedence(int t) const;
  std::uint64_t transaction_wait_timeout_us(int t) const;
  bool transaction_expire_runs_else(int t) const;

  void report(const char* problem);  // keeps the first problem
  void check_open();
  bool check_key(Key key);
  std::int64_t add_value(std::string_view bytes);
  std::uint32_t add_range(std::string_view from, std::string_view to, std::uint32_t limit);
  void add_guard(v1::GuardKind kind, OnFalse on_false, std::uint32_t key, std::int64_t operand,
                 std::uint32_t other = kNoKey);
  Op add_operation(v1::OperationKind kind, std::uint32_t key, v1::OperandKind operand = v1::OPERAND_KIND_INTEGER,
                   std::int64_t value = 0);
  Op add_operation(v1::OperationKind kind, Key key, const Operand& operand, const Expiry& expiry);
  // Index of the expiry of an operation in the expiry columns; -1: it has none.
  int expiry_of(int operation) const;
};

}  // namespace kilokv::client
