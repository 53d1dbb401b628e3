#pragma once
/// attention and attention_grad, in tiles of queries and keys, so that no matrix of all queries and
/// keys comes to be (FlashAttention: T. Dao et al., 2022).

#include "actors/device/cpu/loops/kernel.hpp"

namespace weft::kernels {

/// The products of tiles are oneDNN's in f32 (bf16 goes through f32), plain loops in f64. A head's
/// result depends on its own operands alone.
Kernel attention(const Program& program, OpId op, const ChipContext& chip);

}  // namespace weft::kernels
