#pragma once
/// The part of evaluate.hpp where a value says which elements are taken or drawn.

#include <span>

#include <weft/spmd/program/interpret.hpp>

namespace weft {

/// check_index, gather, scatter, dynamic_slice, dynamic_update_slice. Atoms are not looked at.
Elements evaluate_indexing(const Program& program, OpId op,
                           std::span<const Elements* const> operands);

/// rng_bit_generator of a whole tensor.
Elements random_bits(const Shape& shape, const Elements& state);

}  // namespace weft
