#include <weft/nn/init.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <weft/ops/elementwise.hpp>

#include "spmd/nn/init.hpp"
#include "spmd/program/element.hpp"
#include "spmd/tensor/call.hpp"

namespace weft::init {
namespace {

struct Fans {
  double in, out;
};
Fans fans_of(const char* function, const Parameter& parameter, const std::source_location& loc) {
  const Shape& shape = node_of(parameter, loc)->type.shape;
  if (shape.size() < 2 || shape.num_elements() == 0) {
    fail(Errc::invalid_argument,
         "{}: {} has no fan in and fan out: expected two dims or more, with elements (at {})",
         function, parameter.node()->label(), file_line(loc));
  }
  const auto size = static_cast<double>(shape.num_elements());
  return {size / static_cast<double>(shape[0]), size / static_cast<double>(shape[1])};
}

void expect_deviation(const char* function, double value, const std::source_location& loc) {
  if (value >= 0) return;
  fail(Errc::invalid_argument, "{}: standard_deviation = {}: expected 0 or more (at {})", function,
       value, file_line(loc));
}

/// Throws invalid_argument if the parameter was already used, so that its first value can't be set
/// anymore.
void expect_unused(const Parameter& parameter, const std::source_location& loc) {
  const TensorNode& node = *node_of(parameter, loc);
  if (node.is_off_chips() && node.trace == 0) return;
  fail(Errc::invalid_argument,
       "init: {} has already been used; set its values before the first step, or assign() to it "
       "(at {})",
       node.label(), file_line(loc));
}

void set_made(const Parameter& parameter, const std::string& about, MakeElements make,
              const std::source_location& loc) {
  expect_unused(parameter, loc);
  begin_with(parameter, fmt::format("{} {}", initial_seed(), about), std::move(make));
}

void set_uniform(const Parameter& parameter, double bound, const std::source_location& loc) {
  expect_unused(parameter, loc);
  begin_uniform(parameter, bound);
}

void set_normal(const Parameter& parameter, double mean, double deviation,
                const std::source_location& loc) {
  set_made(parameter, fmt::format("normal {} {}", mean, deviation),
           normal_elements(node_of(parameter, loc)->name, mean, deviation), loc);
}

/// Returns the share of the standard normal distribution below x.
double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Returns the x in [low, high] for which normal_share(x) is `share`. Uses Newton's method, and
/// halves the interval if a step of the method leaves it.
double normal_quantile(double share, double low, double high) {
  low = std::max(low, -40.0);  // below this, normal_share() is 0
  high = std::min(high, 40.0);
  double x = std::clamp(0.0, low, high);
  for (int i = 0; i < 100 && high - low > 1e-9; ++i) {
    const double error = normal_share(x) - share;
    if (error == 0) break;
    (error > 0 ? high : low) = x;
    const double slope = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    const double next = slope > 0 ? x - error / slope : low;
    const bool inside = next > low && next < high;
    if (inside && std::abs(next - x) < 1e-12) break;
    x = inside ? next : 0.5 * (low + high);
  }
  return x;
}

/// Makes the `count` rows of `size` elements orthonormal. Orthogonalizes each row against the rows
/// before it (E. Schmidt, 1907), twice, so that only rounding errors remain (L. Giraud et al.,
/// 2005).
void make_orthonormal(std::vector<double>& rows, std::size_t count, std::size_t size) {
  const auto dot = [&](std::size_t a, std::size_t b) {
    double total = 0;
    for (std::size_t k = 0; k < size; ++k) total += rows[a * size + k] * rows[b * size + k];
    return total;
  };
  for (std::size_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const double along = dot(i, j);
        for (std::size_t k = 0; k < size; ++k) rows[i * size + k] -= along * rows[j * size + k];
      }
    }
    const double length = std::sqrt(dot(i, i));
    for (std::size_t k = 0; k < size; ++k) rows[i * size + k] /= length;
  }
}

}  // namespace

void set(const Parameter& parameter, std::span<const float> elements, std::source_location loc) {
  TensorNode& node = *node_of(parameter, loc);
  if (static_cast<std::int64_t>(elements.size()) != node.type.num_elements()) {
    fail(Errc::invalid_argument, "init::set: {} elements are given for {}, which has {} (at {})",
         elements.size(), node.label(), node.type.num_elements(), file_line(loc));
  }
  expect_unused(parameter, loc);
  const std::int64_t step = byte_size(node.type.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(node.type.bytes()));
  std::byte* to = bytes.data();
  for (const float element : elements) {
    store_element(node.type.dtype, element, to);
    to += step;
  }
  node.storage = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

void constant(const Parameter& parameter, double value, std::source_location loc) {
  expect_unused(parameter, loc);
  TensorNode& node = *node_of(parameter, loc);
  node.storage = constant_values(node.type, static_cast<float>(value));
}

void uniform(const Parameter& parameter, double low, double high, std::source_location loc) {
  if (!(low <= high)) {
    fail(Errc::invalid_argument, "init::uniform: low = {} is above high = {} (at {})", low, high,
         file_line(loc));
  }
  const double middle = 0.5 * (low + high);
  MakeElements around_0 = uniform_elements(node_of(parameter, loc)->name, 0.5 * (high - low));
  set_made(
      parameter, fmt::format("uniform {} {}", low, high),
      [middle, around_0 = std::move(around_0)](std::uint64_t first, std::span<float> out) {
        around_0(first, out);
        for (float& element : out) element = static_cast<float>(middle + element);
      },
      loc);
}

void normal(const Parameter& parameter, double mean, double standard_deviation,
            std::source_location loc) {
  expect_deviation("init::normal", standard_deviation, loc);
  set_normal(parameter, mean, standard_deviation, loc);
}

void trunc_normal(const Parameter& parameter, const TruncatedNormalOptions& options,
                  std::source_location loc) {
  const auto [mean, deviation, low, high] = options;
  if (!(deviation > 0 && low < high)) {
    fail(Errc::invalid_argument,
         "init::trunc_normal: standard_deviation = {}, low = {}, high = {}: expected more than 0, "
         "and low below high (at {})",
         deviation, low, high, file_line(loc));
  }
  // An interval above the mean is mirrored, because shares of the distribution are precise below
  // the mean, where they are small, but near 1 above it.
  const double sign = low > mean ? -1 : 1;
  double from = (low - mean) / deviation;
  double to = (high - mean) / deviation;
  if (sign < 0) from = -std::exchange(to, -from);
  const double below = normal_share(from);
  const double share = normal_share(to) - below;
  set_made(
      parameter, fmt::format("trunc_normal {} {} {} {}", mean, deviation, low, high),
      [=, options = options, uniform = uniform_elements(node_of(parameter, loc)->name, 1)](
          std::uint64_t first, std::span<float> out) {
        uniform(first, out);
        for (float& element : out) {
          const double quantile = below + share * 0.5 * (1 + double(element));
          const double x = options.mean +
                           sign * options.standard_deviation * normal_quantile(quantile, from, to);
          element = static_cast<float>(std::clamp(x, options.low, options.high));
        }
      },
      loc);
}

void xavier_uniform(const Parameter& parameter, double gain, std::source_location loc) {
  const Fans fans = fans_of("init::xavier_uniform", parameter, loc);
  set_uniform(parameter, gain * std::sqrt(6 / (fans.in + fans.out)), loc);
}

void xavier_normal(const Parameter& parameter, double gain, std::source_location loc) {
  const Fans fans = fans_of("init::xavier_normal", parameter, loc);
  set_normal(parameter, 0, gain * std::sqrt(2 / (fans.in + fans.out)), loc);
}

double calculate_gain(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: return 1;
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + negative_slope * negative_slope));
    case Nonlinearity::selu: return 0.75;
  }
  fail(Errc::invalid_argument, "init::calculate_gain: {} isn't a known nonlinearity",
       static_cast<int>(nonlinearity));
}

namespace {

/// Returns the standard deviation of weights that keeps the variance equal from layer to layer.
double kaiming_deviation(const char* function, const Parameter& parameter,
                         const KaimingOptions& options, const std::source_location& loc) {
  const Fans fans = fans_of(function, parameter, loc);
  const double gain = calculate_gain(options.nonlinearity, options.negative_slope);
  return gain / std::sqrt(options.mode == Fan::in ? fans.in : fans.out);
}

}  // namespace

void kaiming_uniform(const Parameter& parameter, const KaimingOptions& options,
                     std::source_location loc) {
  const double deviation = kaiming_deviation("init::kaiming_uniform", parameter, options, loc);
  set_uniform(parameter, std::numbers::sqrt3 * deviation, loc);
}

void kaiming_normal(const Parameter& parameter, const KaimingOptions& options,
                    std::source_location loc) {
  set_normal(parameter, 0, kaiming_deviation("init::kaiming_normal", parameter, options, loc), loc);
}

void orthogonal(const Parameter& parameter, double gain, std::source_location loc) {
  fans_of("init::orthogonal", parameter, loc);
  const auto rows = static_cast<std::size_t>(parameter.shape()[0]);
  const auto columns = static_cast<std::size_t>(parameter.num_elements()) / rows;
  std::vector<float> elements(static_cast<std::size_t>(parameter.num_elements()));
  normal_elements(parameter.name(), 0, 1)(0, elements);
  std::vector<double> vectors(elements.begin(), elements.end());
  make_orthonormal(vectors, std::min(rows, columns), std::max(rows, columns));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < columns; ++k) {
      const double element = rows <= columns ? vectors[i * columns + k] : vectors[k * rows + i];
      elements[i * columns + k] = static_cast<float>(gain * element);
    }
  }
  set(parameter, elements, loc);
}

}  // namespace weft::init
