#pragma once
/// Declares a Prepare, a function that makes an op's kernel, for each op in WEFT_OPS. Kernel source
/// files define them. An op without a definition causes a link error.

#include <type_traits>

#include "chips/cpu/loops/kernel.hpp"
#include "spmd/program/op_list.hpp"

namespace weft::kernels {

/// A function that makes the kernel of an op. The kernel's `run` is empty if the dtype isn't
/// supported.
using Prepare = Kernel (*)(const Program&, OpId, const ChipContext&);

namespace prepares {
#define WEFT_PREPARE(name, number) extern const Prepare name;
WEFT_OPS(WEFT_PREPARE)
#undef WEFT_PREPARE
}  // namespace prepares

/// Turns kMake, a function with or without a ChipContext parameter, into a Prepare.
template <auto kMake>
Kernel prepare_by(const Program& program, OpId op, const ChipContext& chip) {
  if constexpr (std::is_invocable_v<decltype(kMake), const Program&, OpId, const ChipContext&>) {
    return kMake(program, op, chip);
  } else {
    return kMake(program, op);
  }
}

}  // namespace weft::kernels
