#pragma once
/// Sets and returns the seed of random numbers (torch.manual_seed).

#include <cstdint>

namespace weft {

/// Sets the seed of all random numbers: initial values of parameters, rand(), dropout(). Each
/// thread has its own seed; the trainer sets it from RunConfig::seed.
void manual_seed(std::uint64_t seed);
/// Returns the seed of the calling thread.
std::uint64_t initial_seed();

}  // namespace weft
