#pragma once
/// Declares a Prepare for each op of the list. It makes the op's kernel, and is defined beside it.
/// An op without a Prepare causes a link error.

#include <type_traits>

#include "chips/cpu/loops/kernel.hpp"
#include "spmd/program/op_list.hpp"

namespace weft::kernels {

/// Returns a kernel with an empty `run` if there is no kernel for the dtype.
using Prepare = Kernel (*)(const Program&, OpId, const ChipContext&);

namespace prepares {
#define WEFT_PREPARE(name, number) extern const Prepare name;
WEFT_OPS(WEFT_PREPARE)
#undef WEFT_PREPARE
}  // namespace prepares

/// Makes a Prepare of a function, which may take a ChipContext.
template <auto kMake>
Kernel prepare_by(const Program& program, OpId op, const ChipContext& chip) {
  if constexpr (std::is_invocable_v<decltype(kMake), const Program&, OpId, const ChipContext&>) {
    return kMake(program, op, chip);
  } else {
    return kMake(program, op);
  }
}

}  // namespace weft::kernels
