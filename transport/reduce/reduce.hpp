#pragma once
/// The arithmetic of all_reduce and reduce_scatter.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// The instructions that a reduction may use. Which ones never shows in a result.
enum class InstructionSet : std::uint8_t { portable, avx2, avx512 };
std::string_view to_string(InstructionSet set) noexcept;
/// What this processor and this build have, from the slowest to the fastest.
std::vector<InstructionSet> instruction_sets();

/// The same bytes' offset in several arenas.
struct Operands {
  std::span<std::byte* const> bases;
  std::size_t offset = 0;
};

/// Element by element, combines the sources in their order and writes the result to every
/// destination. Integers wrap; bf16 is summed in f32 and rounded once, to nearest even; NaN wins a
/// max or min. A destination may be one of the sources; otherwise they don't overlap. The kind
/// suits the dtype, and there is a source. Uses the fastest instructions there are.
void reduce(ReduceKind kind, DType dtype, Operands sources, Operands destinations,
            std::int64_t count);
/// The same with one of instruction_sets().
void reduce(InstructionSet set, ReduceKind kind, DType dtype, Operands sources,
            Operands destinations, std::int64_t count);

}  // namespace weft
