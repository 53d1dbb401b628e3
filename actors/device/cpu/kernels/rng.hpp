#pragma once
/// rng_bit_generator.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

Kernel rng_bit_generator(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
