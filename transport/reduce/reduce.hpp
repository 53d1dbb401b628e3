#pragma once
/// The arithmetic of all_reduce and reduce_scatter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {

/// The instruction sets that a reduction may use. All give the same results.
enum class InstructionSet : std::uint8_t { portable, avx2, avx512 };
std::string_view to_string(InstructionSet set) noexcept;
/// Returns the sets that this processor and this build have, from the slowest to the fastest.
std::vector<InstructionSet> instruction_sets();

/// The same byte offset in several arenas.
struct Operands {
  std::span<std::byte* const> bases;
  std::size_t offset = 0;
};

/// Combines the sources element by element, in their order, and writes the result to every
/// destination. Integers wrap. bf16 and f16 are summed in f32 and rounded once, to nearest even. In
/// a max or min, a NaN wins. A destination may be one of the sources; otherwise they must not
/// overlap. The kind must suit the dtype, and there must be at least one source. Uses the fastest
/// instruction set.
void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count);
/// Does the same with a given instruction set.
void reduce(InstructionSet set, ReduceKind kind, DType dtype, Operands sources,
            Operands destinations, std::int64_t count);
/// Returns a loop that gives the same elements as reduce().
ReduceLoop16 reduce_loop_16(ReduceKind kind, DType dtype);

}  // namespace weft
