#include "engine/workloads/tpcc_scale.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workloads/key_name.hpp"

namespace kilokv::engine {

namespace {

using Sums = std::vector<std::int64_t>;

// Adds records to the books. Each book has a name, and must be 0 at the end.
class TpccAudit : public StateAudit {
 public:
  explicit TpccAudit(const TpccScale& scale)
      : scale_(scale),
        warehouse_ytd_(scale.warehouses, 0),
        district_orders_(scale.districts(), 0),
        district_new_(scale.districts(), 0),
        customer_balance_(scale.customers(), 0),
        item_sold_(scale.items, 0) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::string_view column = key.substr(0, KeyName::kPrefixBytes);
    const std::uint64_t index = KeyName::index_of(key);
    const auto high = static_cast<std::uint64_t>(integer) / TpccScale::kPacking;
    const auto low = static_cast<std::int64_t>(static_cast<std::uint64_t>(integer) % TpccScale::kPacking);
    if (column == "tpor" || column == "tpno" || column == "tpol" || column == "tphi") {
      add_row(column, integer, high, low);
    } else {
      add_column(column, index, integer);
    }
  }

  std::string violation() const override {
    const auto rows = static_cast<std::int64_t>(2 * scale_.districts() + 3 * scale_.customers() + scale_.warehouses +
                                                scale_.items * (1 + scale_.warehouses));
    if (columns_ != rows) {
      return "initial records: expected " + std::to_string(rows) + ", got " + std::to_string(columns_);
    }
    if (!wrong_price_.empty()) return wrong_price_ + " is not the price that it was";
    for (const auto& [sums, what] : {std::pair{&warehouse_ytd_, "W_YTD less the D_YTD of warehouse "},
                                     {&district_orders_, "D_NEXT_O_ID less the orders of district "},
                                     {&district_new_, "new orders less orders of district "},
                                     {&customer_balance_, "C_BALANCE plus C_YTD_PAYMENT of customer "},
                                     {&item_sold_, "S_YTD less the order lines of item "}}) {
      if (std::string problem = first_not_0(*sums, what); !problem.empty()) return problem;
    }
    const Sums totals{lines_, paid_to_warehouses_, paid_by_customers_, payments_};
    const char* const names[] = {"order lines less those of the orders", "W_YTD less history",
                                 "C_YTD_PAYMENT less history", "C_PAYMENT_CNT less history"};
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (totals[i] != 0) return std::string(names[i]) + " is " + std::to_string(totals[i]);
    }
    return {};
  }

 private:
  static std::string first_not_0(const Sums& sums, const char* what) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (sums[i] != 0) return what + std::to_string(i) + " is " + std::to_string(sums[i]);
    }
    return {};
  }
  static void add_to(Sums* sums, std::uint64_t index, std::int64_t value) {
    if (index < sums->size()) (*sums)[index] += value;
  }

  void add_row(std::string_view column, std::int64_t integer, std::uint64_t high, std::int64_t low) {
    if (column == "tpor") {
      add_to(&district_orders_, high / scale_.customers_of_district, -1);
      add_to(&district_new_, high / scale_.customers_of_district, -1);
      lines_ -= low;
    } else if (column == "tpno") {
      add_to(&district_new_, static_cast<std::uint64_t>(integer), 1);
    } else if (column == "tpol") {
      ++lines_;
      add_to(&item_sold_, high, -low);
    } else {
      paid_to_warehouses_ -= integer;
      paid_by_customers_ -= integer;
      --payments_;
    }
  }

  void add_column(std::string_view column, std::uint64_t index, std::int64_t integer) {
    ++columns_;
    if (column == "tpwy") {
      add_to(&warehouse_ytd_, index, integer);
      paid_to_warehouses_ += integer - static_cast<std::int64_t>(TpccScale::kDistricts) * TpccScale::kDistrictYtd;
    } else if (column == "tpdy") {
      add_to(&warehouse_ytd_, index / TpccScale::kDistricts, -integer);
    } else if (column == "tpdn") {
      add_to(&district_orders_, index, integer - 1);
    } else if (column == "tpcb") {
      add_to(&customer_balance_, index, integer);
    } else if (column == "tpcy") {
      add_to(&customer_balance_, index, integer);
      paid_by_customers_ += integer - TpccScale::kCustomerYtd;
    } else if (column == "tpcn") {
      payments_ += integer - 1;
    } else if (column == "tpst") {
      add_to(&item_sold_, index % scale_.items, integer);
    } else if (column == "tpit" && integer != TpccScale::price_of(index)) {
      wrong_price_ = "item " + std::to_string(index);
    }
  }

  TpccScale scale_;
  Sums warehouse_ytd_, district_orders_, district_new_, customer_balance_, item_sold_;
  std::int64_t lines_ = 0, paid_to_warehouses_ = 0, paid_by_customers_ = 0, payments_ = 0;
  std::int64_t columns_ = 0;
  std::string wrong_price_;
};

}  // namespace

TpccScale::TpccScale(std::uint64_t customers, std::uint64_t warehouses_or_0)
    : warehouses(warehouses_or_0 != 0 ? warehouses_or_0
                                      : std::max<std::uint64_t>(1, customers / (kDistricts * kCustomersFull))),
      customers_of_district(std::max<std::uint64_t>(1, (customers + districts() - 1) / districts())),
      items(std::clamp(kItemsFull * customers_of_district / kCustomersFull, kItemsMin, kItemsFull)) {}

std::unique_ptr<StateAudit> make_tpcc_audit(const TpccScale& scale) { return std::make_unique<TpccAudit>(scale); }

}  // namespace kilokv::engine
