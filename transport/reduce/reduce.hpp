#pragma once
/// reduce(): computes the sums, maxima and minima of all_reduce and reduce_scatter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {

/// The instruction sets that a reduction may use. The results are the same with all of them.
enum class InstructionSet : std::uint8_t { portable, avx2, avx512 };
std::string_view to_string(InstructionSet set) noexcept;
/// Returns the sets that both this processor and this build support, from the slowest to the
/// fastest.
std::vector<InstructionSet> instruction_sets();

/// One range in each of several arenas, which begins at the same byte offset everywhere.
struct Operands {
  std::span<std::byte* const> bases;
  std::size_t offset = 0;
};

/// Combines the sources element by element, in their order, and writes the result to every
/// destination. Uses the fastest instruction set. Integers wrap around. bf16 and f16 are summed in
/// f32 and rounded once, to nearest even. The max or min of a NaN and any number is NaN. A
/// destination may be one of the sources; otherwise destinations and sources must not overlap. The
/// kind must suit the dtype, and there must be at least one source.
void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count);
/// Does the same as the reduce() above, with instruction set `set`.
void reduce(InstructionSet set, ReduceKind kind, DType dtype, Operands sources,
            Operands destinations, std::int64_t count);
/// Returns a function that computes the same as reduce(), for 16 bytes of each source.
ReduceLoop16 reduce_loop_16(ReduceKind kind, DType dtype);

}  // namespace weft
