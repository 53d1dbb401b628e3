#pragma once
/// How each op is made ready: a Prepare for each op of the list, defined beside its kernels. An op
/// that has none doesn't link.

#include <type_traits>

#include "actors/device/cpu/loops/kernel.hpp"
#include "spmd/program/op_list.hpp"

namespace weft::kernels {

/// An empty `run`: there is no kernel for the dtype.
using Prepare = Kernel (*)(const Program&, OpId, const ChipContext&);

namespace prepares {
#define WEFT_PREPARE(name, number) extern const Prepare name;
WEFT_OPS(WEFT_PREPARE)
#undef WEFT_PREPARE
}  // namespace prepares

/// By a function that need not know the chip.
template <auto kMake>
Kernel prepare_by(const Program& program, OpId op, const ChipContext& chip) {
  if constexpr (std::is_invocable_v<decltype(kMake), const Program&, OpId, const ChipContext&>) {
    return kMake(program, op, chip);
  } else {
    return kMake(program, op);
  }
}

}  // namespace weft::kernels
