#include "engine/workloads/distribution.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <system_error>

#include "engine/base/check.hpp"

namespace kilokv::engine {

namespace {

// log1p(x) / x and expm1(x) / x, continued to 1 at 0, so that theta = 1 needs no separate case.
double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }

std::uint64_t coprime_stride(std::uint64_t keys) {
  auto stride = static_cast<std::uint64_t>(static_cast<double>(keys) * 0.6180339887498949) | 1u;
  while (std::gcd(stride, keys) != 1) stride += 2;
  return stride;
}

}  // namespace

Result<DistributionOptions> parse_distribution(std::string_view text) {
  if (text == "uniform") return DistributionOptions{};
  for (const auto& [prefix, scrambled] : {std::pair{std::string_view("zipf:"), true}, {"zipf-ordered:", false}}) {
    if (!text.starts_with(prefix)) continue;
    const std::string_view number = text.substr(prefix.size());
    DistributionOptions options{0, scrambled};
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), options.theta);
    if (error == std::errc{} && end == number.data() + number.size() && options.theta >= 0 && options.theta <= 10) {
      return options;
    }
  }
  return Status::invalid({"distribution", "uniform, zipf:THETA or zipf-ordered:THETA with THETA from 0 to 10",
                          std::string(text), "--distribution"});
}

std::string to_string(const DistributionOptions& options) {
  if (options.theta == 0) return "uniform";
  std::string number = std::to_string(options.theta);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return (options.scrambled ? "zipf:" : "zipf-ordered:") + number;
}

KeyDistribution::KeyDistribution(std::uint64_t keys, const DistributionOptions& options)
    : keys_(keys), theta_(options.theta) {
  KILOKV_CHECK(keys >= 1 && keys <= std::uint64_t{1} << 32 && options.theta >= 0);
  if (theta_ == 0) return;
  if (options.scrambled) stride_ = coprime_stride(keys);
  integral_first_ = integral(1.5) - 1;
  integral_last_ = integral(static_cast<double>(keys) + 0.5);
  shortcut_ = 2 - integral_inverse(integral(2.5) - std::pow(2.0, -theta_));
}

double KeyDistribution::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_over((1 - theta_) * log_x) * log_x;
}

double KeyDistribution::integral_inverse(double y) const {
  const double t = std::max(-1.0, y * (1 - theta_));
  return std::exp(log1p_over(t) * y);
}

std::uint64_t KeyDistribution::draw_rank(Random* random) const {
  const auto last = static_cast<double>(keys_);
  while (true) {
    const double u = integral_last_ + random->unit() * (integral_first_ - integral_last_);
    const double x = integral_inverse(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, last);
    if (k - x <= shortcut_ || u >= integral(k + 0.5) - std::pow(k, -theta_)) return static_cast<std::uint64_t>(k) - 1;
  }
}

}  // namespace kilokv::engine
