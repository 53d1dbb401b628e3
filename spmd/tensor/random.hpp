#pragma once
/// Random tensors. Numbers come from Philox, a counter-based generator: they depend on the seed,
/// the step, how many random calls the step has made before, and the place in the tensor; not on
/// the mesh or the sharding, and they are the same when the step runs again.

#include <cstdint>
#include <source_location>

#include <weft/spmd/tensor/tensor.hpp>

namespace weft {

/// Seed of what is random: parameters' initial values, rand, dropout. One per thread; the trainer
/// sets it from RunConfig::seed.
void manual_seed(std::uint64_t seed);
/// The calling thread's.
std::uint64_t initial_seed();

/// torch.rand: f32, uniform in [0, 1).
Tensor rand(const Shape& shape, std::source_location loc = std::source_location::current());

}  // namespace weft
