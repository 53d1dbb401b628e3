#pragma once
/// The arithmetic of all_reduce and reduce_scatter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/type.hpp>

#include "spmd/mesh/sharding.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {

/// The instruction sets that a reduction may use. The results are the same for all.
enum class InstructionSet : std::uint8_t { portable, avx2, avx512 };
std::string_view to_string(InstructionSet set) noexcept;
/// The sets that this processor and this build have, from the slowest to the fastest.
std::vector<InstructionSet> instruction_sets();

/// The same bytes' offset in several arenas.
struct Operands {
  std::span<std::byte* const> bases;
  std::size_t offset = 0;
};

/// Combines the sources element by element, in their order, and writes the result to every
/// destination. Integers wrap; bf16 and f16 are summed in f32 and rounded once, to nearest even;
/// in a max or min a NaN wins. A destination may be one of the sources; otherwise they must not
/// overlap. The kind must suit the dtype, and there must be a source. Uses the fastest instruction
/// set.
void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count);
/// The same with a given instruction set.
void reduce(InstructionSet set, ReduceKind kind, DType dtype, Operands sources,
            Operands destinations, std::int64_t count);
/// Gives the same elements as reduce().
ReduceLoop16 reduce_loop_16(ReduceKind kind, DType dtype);

}  // namespace weft
