#include "engine/workloads/tpcc.hpp"

#include <string>

namespace kilokv::engine {

namespace {

constexpr double kRolledBackShare = 0.01, kRemoteLineShare = 0.01, kRemotePaymentShare = 0.15;
constexpr std::int64_t kQuantityMax = 10, kCentsMin = 1'00, kCentsMax = 5'000'00;
// Each generator takes its row numbers from one of these parts. Two generators with one part fail on each other's rows.
constexpr std::uint64_t kParts = 4'000, kNumbersOfPart = 10'000'000;

}  // namespace

Tpcc::Tpcc(std::uint64_t keys, const DistributionOptions& distribution, const TpccOptions& options, std::uint64_t seed)
    : scale_(keys, options.warehouses),
      payment_share_(options.payment_share),
      customers_(scale_.customers_of_district, distribution),
      items_(scale_.items, distribution),
      random_(seed),
      first_number_(seed % kParts * kNumbersOfPart) {}

std::uint64_t Tpcc::next_number() { return first_number_ + numbers_++ % kNumbersOfPart; }

std::uint64_t Tpcc::draw_district(std::uint64_t warehouse) {
  return warehouse * TpccScale::kDistricts + random_.below(TpccScale::kDistricts);
}

std::uint64_t Tpcc::draw_customer(std::uint64_t district) {
  return district * scale_.customers_of_district + customers_.draw(&random_);
}

// With probability `share` another warehouse, if there is one.
std::uint64_t Tpcc::draw_warehouse_beside(std::uint64_t warehouse, double share) {
  if (scale_.warehouses == 1 || !random_.chance(share)) return warehouse;
  return (warehouse + 1 + random_.below(scale_.warehouses - 1)) % scale_.warehouses;
}

std::uint64_t Tpcc::draw_item(const Order& order) {
  const auto is_there = [&](std::uint64_t item) {
    for (std::size_t i = 0; i < order.line_count; ++i) {
      if (order.lines[i].item == item) return true;
    }
    return false;
  };
  std::uint64_t item = items_.draw(&random_);
  for (int tries = 0; tries < 8 && is_there(item); ++tries) item = items_.draw(&random_);
  while (is_there(item)) item = (item + 1) % scale_.items;  // for a distribution that hardly draws other items
  return item;
}

Tpcc::Order Tpcc::draw_order() {
  const std::uint64_t home = random_.below(scale_.warehouses);
  const std::uint64_t district = draw_district(home);
  Order order{next_number(), district, draw_customer(district), 0, {}};
  const auto lines = static_cast<std::size_t>(random_.between(TpccScale::kLinesMin, TpccScale::kLinesMax));
  while (order.line_count < lines) {
    const Line line{draw_item(order), draw_warehouse_beside(home, kRemoteLineShare), random_.between(1, kQuantityMax)};
    order.lines[order.line_count++] = line;
  }
  // The first item that does not exist.
  if (random_.chance(kRolledBackShare)) order.lines[lines - 1].item = scale_.items;
  return order;
}

Tpcc::Payment Tpcc::draw_payment() {
  const std::uint64_t home = random_.below(scale_.warehouses);
  const std::uint64_t district = draw_district(home), customers_home = draw_warehouse_beside(home, kRemotePaymentShare);
  const std::uint64_t customers_district = customers_home == home ? district : draw_district(customers_home);
  return {next_number(), district, draw_customer(customers_district), random_.between(kCentsMin, kCentsMax)};
}

void Tpcc::for_each_initial(const InitialVisitor& visit) const {
  const auto column = [&](std::string_view prefix, std::uint64_t count, std::int64_t value) {
    for (std::uint64_t i = 0; i < count; ++i) visit({.key = KeyName(prefix, i).view(), .integer = value});
  };
  column("tpcb", scale_.customers(), -TpccScale::kCustomerYtd);
  column("tpcn", scale_.customers(), 1);
  column("tpcy", scale_.customers(), TpccScale::kCustomerYtd);
  column("tpdn", scale_.districts(), 1);
  column("tpdy", scale_.districts(), TpccScale::kDistrictYtd);
  for (std::uint64_t i = 0; i < scale_.items; ++i) {
    visit({.key = KeyName("tpit", i).view(), .integer = TpccScale::price_of(i)});
  }
  column("tpst", scale_.warehouses * scale_.items, 0);
  column("tpwy", scale_.warehouses, TpccScale::kDistricts * TpccScale::kDistrictYtd);
}

InvariantRule Tpcc::invariant() const {
  return {.statement = std::to_string(scale_.warehouses) +
                       " warehouses: their sums are those of their districts, customers, orders and lines",
          .integers = true,
          .audit = make_tpcc_audit(scale_)};
}

}  // namespace kilokv::engine
