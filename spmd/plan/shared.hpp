#pragma once
/// Chooses the data that chips of a host share: gathered values that are stored once per host, and
/// operands of reduce_scatters that other chips read in place.

#include <span>
#include <vector>

#include "spmd/plan/plan.hpp"

namespace weft {

/// Chooses which temporaries of `plan` the chips share. The result of a large all_gather within a
/// host becomes shared, unless another collective reads it. The gather's operand then becomes a
/// part of the shared value if possible. The result of a large reduce_scatter within a host becomes
/// a tile if only one loop reads it and this loop may add up the operands. No loop extends across
/// one of the ops `borders` (fuse.hpp).
void share_values(Plan& plan, const Mesh& mesh, const Target& target,
                  std::span<const OpId> borders = {});

/// Returns whether the op that makes the operand of an all_gather may write it straight to its part
/// of the shared result. The part must be a range of whole cache lines, and nothing else may read
/// the operand.
bool may_be_part(const Program& program, OpId gather);
/// Returns whether loops that read the result of a reduce_scatter may themselves add up the
/// operands of all chips. The op must sum f32 or bf16 elements of one range of each operand. It
/// mustn't be in a loop of the program, because the next iteration would overwrite data that a
/// slower chip still reads.
bool may_be_added_by_loops(const Program& program, OpId scatter);
/// Returns whether the value is the result of a reduce_scatter that loops add up themselves.
bool is_added_by_loops(const Program& program, const std::vector<Slot>& slots, ValueId value);

/// Returns whether two shared values are gathered by different groups of chips.
bool groups_differ(const Program& program, ValueId a, ValueId b);

/// Returns whether all chips must meet at the end of the plan, because a chip may still read data
/// that another chip's next run would overwrite.
bool needs_final_barrier(const Plan& plan, const Mesh& mesh);

}  // namespace weft
