#pragma once
/// What the chips of a host have in common: gathered values that lie once, and operands of
/// reduce_scatters, which other chips read where they lie.

#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Chooses, of the values of `plan` that are temporaries, those that chips have in common. The
/// result of a large all_gather within a host becomes shared, unless another collective reads it,
/// and its operand a part of it where that may be. The result of a large reduce_scatter within a
/// host becomes a tile if loops may add it and one loop alone reads it.
void share_values(Plan& plan, const Mesh& mesh, const Target& target);

/// Whether the op that makes the operand of an all_gather may write it straight to its part of the
/// shared result: it is a range of whole cache lines there, and nothing else reads the operand.
bool may_be_part(const Program& program, OpId gather);
/// Whether loops may add the operands of all chips themselves as they read a reduce_scatter's
/// result: a sum of f32 or bf16, one range of each operand. Not in a loop of the program, whose
/// next iteration would overwrite what a slower chip still reads.
bool may_be_added_by_loops(const Program& program, OpId scatter);
/// Whether it is such a result, and a tile.
bool is_added_by_loops(const Program& program, const std::vector<Slot>& slots, ValueId value);

/// All chips that differ only in these atoms meet in the op. 0 if no chips meet, or only some may,
/// as in a collective_permute or a ppermute.
AtomMask meeting_atoms(const Program& program, OpId op);

/// Whether two shared values are gathered by different groups of chips.
bool groups_differ(const Program& program, ValueId a, ValueId b);

/// Whether all chips must meet at the end, because one chip may still read what another one, in
/// its next program, would overwrite.
bool needs_final_barrier(const Plan& plan, const Mesh& mesh);

}  // namespace weft
