#pragma once
/// The arithmetic of all_reduce and reduce_scatter.

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/spmd/mesh/sharding.hpp>
#include <weft/spmd/program/type.hpp>

namespace weft {

/// The same bytes' offset in several arenas.
struct Operands {
  std::span<std::byte* const> bases;
  std::size_t offset = 0;
};

/// Element by element, combines the sources in their order and writes the result to every
/// destination. Integers wrap; bf16 is summed in f32 and rounded once, to nearest even; NaN wins a
/// max or min. A destination may be one of the sources; otherwise they don't overlap. The kind
/// suits the dtype.
void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count);

}  // namespace weft
