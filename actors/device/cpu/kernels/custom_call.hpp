#pragma once
/// custom_call.

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// Throws not_found for an op that isn't registered in this process.
Kernel custom_call(const Program& program, OpId op);

}  // namespace weft::kernels
