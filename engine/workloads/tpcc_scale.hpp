// The size of a TPC-C database, its initial records, and the check of its state. See tpcc.hpp.
// Thread safety: one thread for each object.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/workloads/invariant.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::engine {

struct TpccOptions {
  std::uint64_t warehouses = 0;        // 0: one for each 30,000 customers
  double payment_share = 43.0 / 88.0;  // as in the standard: 43 Payments to 45 NewOrders, of 100 transactions in all
};

struct TpccScale {
  static constexpr std::uint64_t kDistricts = 10;         // in a warehouse
  static constexpr std::uint64_t kCustomersFull = 3'000;  // in a district
  static constexpr std::uint64_t kItemsFull = 100'000, kItemsMin = 33;
  static constexpr std::uint64_t kCustomersMax = 30'000'000;
  static constexpr std::uint64_t kLinesMin = 5, kLinesMax = 15;  // in an order
  static constexpr std::uint64_t kPacking = 16;  // more than the lines of an order, and than the quantity in a line
  static constexpr std::int64_t kDistrictYtd = 30'000'00, kCustomerYtd = 10'00;  // cents, at the start

  TpccScale(std::uint64_t customers, std::uint64_t warehouses_or_0);

  static std::int64_t price_of(std::uint64_t item) {
    return 1'00 + static_cast<std::int64_t>(splitmix64(&item) % 99'01);  // 1.00 to 100.00
  }
  static std::int64_t packed(std::uint64_t high, std::uint64_t low) {
    return static_cast<std::int64_t>(high * kPacking + low);
  }
  std::uint64_t districts() const { return warehouses * kDistricts; }
  std::uint64_t customers() const { return districts() * customers_of_district; }
  std::uint64_t stock(std::uint64_t warehouse, std::uint64_t item) const { return warehouse * items + item; }

  std::uint64_t warehouses, customers_of_district, items;
};

std::unique_ptr<StateAudit> make_tpcc_audit(const TpccScale& scale);

}  // namespace kilokv::engine
