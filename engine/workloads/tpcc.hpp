// tpcc: NewOrder and Payment of TPC-C (revision 5.11, clauses 2.4 and 2.5), with integers for rows.
//
// `keys` customers: one warehouse for each 30,000, or `warehouses`; 10 districts in each warehouse. If a district then
// has fewer than 3,000 customers, there are fewer than 100,000 items, in the same proportion. A record is a column that
// these two transactions write, or the price of an item:
//
//   tpwy warehouse  W_YTD            tpit item   I_PRICE             tpor order       customer * 16 + lines
//   tpdy district   D_YTD            tpst stock  S_YTD               tpno new order   district
//   tpdn district   D_NEXT_O_ID      tpcb customer C_BALANCE         tpol order line  item * 16 + quantity
//                                    tpcy, tpcn  C_YTD_PAYMENT, _CNT tphi history     amount in cents
//
// NewOrder: 5 to 15 lines of distinct items, with quantities 1 to 10. One line in 100 is from another warehouse, if
// there is one. It has FAIL guards I_PRICE == the price in the client's catalogue. One order in 100 has an item that
// does not exist, so that it is rolled back (GUARD_FAILED). S_QUANTITY needs no record: it decreases by the quantity,
// and increases by 91 before it would fall below 10. So it stays within 10 to 100, and is 10 + (initial - 10 - S_YTD)
// modulo 91.
// Payment: 1.00 to 5,000.00; 15 of 100 are for a customer of another warehouse, if there is one.
//
// Deviations. The generator itself makes an order's number; D_NEXT_O_ID is counted, and not read, because a transaction
// cannot make a key from what it reads. (A guard on it would fail for all but one order of a district in a batch.) FAIL
// guards `absent` on orders and history keep two generators from writing one row twice. Customers are always chosen by
// number, never by name. The distribution draws items and customers, not NURand. There are no initial orders. Columns
// that nothing writes (names, taxes, discounts) are left out, and so are terminals and their waits.
//
// Invariant: for each warehouse, W_YTD is the sum of D_YTD. D_NEXT_O_ID is the number of orders of each district, which
// have all their lines and as many new orders. S_YTD of each item is what its lines sold. For each customer, C_BALANCE
// is -C_YTD_PAYMENT. Payments, W_YTD and history agree.
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"
#include "engine/workloads/tpcc_scale.hpp"

namespace kilokv::engine {

class Tpcc {
 public:
  // Requires: 1 <= keys <= TpccScale::kCustomersMax.
  Tpcc(std::uint64_t keys, const DistributionOptions& distribution, const TpccOptions& options, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      if (random_.chance(payment_share_)) {
        payment(sink, draw_payment());
      } else {
        new_order(sink, draw_order());
      }
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  struct Line {
    std::uint64_t item, warehouse;
    std::int64_t quantity;
  };
  struct Order {
    std::uint64_t number, district, customer;
    std::size_t line_count;
    std::array<Line, TpccScale::kLinesMax> lines;
  };
  struct Payment {
    std::uint64_t number, district, customer;
    std::int64_t cents;
  };

  std::uint64_t draw_district(std::uint64_t warehouse);
  std::uint64_t draw_customer(std::uint64_t district);
  std::uint64_t draw_warehouse_beside(std::uint64_t warehouse, double share);
  std::uint64_t draw_item(const Order& order);  // one that the order does not have yet
  Order draw_order();
  Payment draw_payment();
  std::uint64_t next_number();

  template <TransactionSink Sink>
  void new_order(Sink* sink, const Order& order) {
    sink->begin(0, 0);
    const std::uint32_t row = sink->key(KeyName("tpor", order.number).view());
    sink->guard(GuardKind::absent, OnFalse::fail, row, 0, kNone);
    for (std::size_t i = 0; i < order.line_count; ++i) {
      const std::uint64_t item = order.lines[i].item;
      const std::uint32_t key = sink->key(KeyName("tpit", item).view());
      sink->guard(GuardKind::equal, OnFalse::fail, key, TpccScale::price_of(item), kNone);
    }
    sink->op(OpKind::add, sink->key(KeyName("tpdn", order.district).view()), Operand::integer, 1);
    sink->op(OpKind::put, row, Operand::integer, TpccScale::packed(order.customer, order.line_count));
    sink->op(OpKind::put, sink->key(KeyName("tpno", order.number).view()), Operand::integer,
             static_cast<std::int64_t>(order.district));
    for (std::size_t i = 0; i < order.line_count; ++i) {
      const Line& line = order.lines[i];
      const KeyName stock("tpst", scale_.stock(line.warehouse, line.item));
      const KeyName name("tpol", order.number * TpccScale::kPacking + i);
      sink->op(OpKind::add, sink->key(stock.view()), Operand::integer, line.quantity);
      sink->op(OpKind::put, sink->key(name.view()), Operand::integer,
               TpccScale::packed(line.item, static_cast<std::uint64_t>(line.quantity)));
    }
    sink->end();
  }

  template <TransactionSink Sink>
  void payment(Sink* sink, const Payment& payment) {
    sink->begin(0, 0);
    const std::uint32_t row = sink->key(KeyName("tphi", payment.number).view());
    sink->guard(GuardKind::absent, OnFalse::fail, row, 0, kNone);
    const auto add = [&](std::string_view prefix, std::uint64_t index, std::int64_t delta) {
      sink->op(OpKind::add, sink->key(KeyName(prefix, index).view()), Operand::integer, delta);
    };
    add("tpwy", payment.district / TpccScale::kDistricts, payment.cents);
    add("tpdy", payment.district, payment.cents);
    add("tpcb", payment.customer, -payment.cents);
    add("tpcy", payment.customer, payment.cents);
    add("tpcn", payment.customer, 1);
    sink->op(OpKind::put, row, Operand::integer, payment.cents);
    sink->end();
  }

  TpccScale scale_;
  double payment_share_;
  KeyDistribution customers_, items_;
  Random random_;
  std::uint64_t first_number_, numbers_ = 0;
};

}  // namespace kilokv::engine
