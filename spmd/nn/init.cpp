#include "spmd/nn/init.hpp"

#include <cmath>
#include <numbers>

#include <weft/ops.hpp>

#include "spmd/program/philox.hpp"

namespace weft {
namespace {

/// Two draws per element come from different counters.
double draw(std::uint64_t stream, std::uint64_t counter) {
  return uniform(random_word(initial_seed(), stream, counter));
}

}  // namespace

std::vector<float> uniform_init(std::string_view name, std::int64_t count, double bound) {
  const std::uint64_t stream = stream_of(name);
  std::vector<float> elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float unit = uniform(random_word(initial_seed(), stream, i));
    elements[i] = static_cast<float>(bound) * (2 * unit - 1);
  }
  return elements;
}

std::vector<float> normal_init(std::string_view name, std::int64_t count, double mean,
                               double standard_deviation) {
  const std::uint64_t stream = stream_of(name);
  std::vector<float> elements(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - draw(stream, 2 * i)));
    const double angle = 2 * std::numbers::pi * draw(stream, 2 * i + 1);
    elements[i] = static_cast<float>(mean + standard_deviation * radius * std::cos(angle));
  }
  return elements;
}

}  // namespace weft
