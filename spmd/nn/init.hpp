#pragma once
/// Initial values of parameters (torch.nn.init): functions of the seed (random.hpp) and
/// the parameter's name, so that they are the same on every worker and mesh.

#include <cstdint>
#include <string_view>
#include <vector>

namespace weft {

/// Uniform in [-bound, bound).
std::vector<float> uniform_init(std::string_view name, std::int64_t count, double bound);
/// Normal, by Box and Muller's method.
std::vector<float> normal_init(std::string_view name, std::int64_t count, double mean,
                               double standard_deviation);

}  // namespace weft
