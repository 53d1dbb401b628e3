#pragma once
/// What lies where.

#include <source_location>
#include <string>

#include <weft/spmd/tensor/tensor.hpp>

namespace weft {

/// Which chips hold which part of a tensor, as a grid of the two first dims that are sharded
/// (torch_xla's function of this name):
///
///     'fc1.weight' f32[128,64] [{"model"}, {}]
///     rows of dim 0: 64, columns of dim 1: 64
///     | 0 2 |
///     | 1 3 |
///
/// Throws invalid_argument for a value that is yet to be computed, unavailable without a mesh.
std::string visualize_tensor_sharding(const Tensor& tensor,
                                      std::source_location loc = std::source_location::current());

}  // namespace weft
