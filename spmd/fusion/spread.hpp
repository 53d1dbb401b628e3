#pragma once
/// Spreads and views. A spread repeats the elements of a smaller value, and a view is a range of
/// the elements of a larger one. A loop of elementwise ops reads the other value in their place.

#include <cstdint>
#include <optional>

#include "spmd/program/program.hpp"

namespace weft {

/// The result of a broadcast_in_dim as a matrix. Either each row is the operand, or each row
/// repeats one element of the operand.
struct Spread {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool repeats_row = false;

  bool operator==(const Spread&) const = default;
};

/// A loop of its own doesn't pay for shorter rows.
inline constexpr std::int64_t kSpreadColumnsMin = 32;

/// Returns nothing for other ops, other broadcasts, the broadcast of a loop's carry, and short
/// rows.
std::optional<Spread> spread_of(const Program& program, OpId op);

/// Returns whether the op's result is one range of its operand, so that it can be read there. This
/// holds for a reshape, and for an all_slice that doesn't skip elements, but not if the operand is
/// a loop's carry.
bool is_view(const Program& program, OpId op);
/// Returns whether a step that runs only `reader` may read the view in place. Such a step needs
/// aligned operands. Collectives and the borders of loops and branches can't read in place.
bool may_read_in_place(const Program& program, OpId reader, OpId view);

/// Returns whether loops make the op's result themselves as they read it: it is a fill, a spread or
/// a view.
bool is_made_by_loops(const Program& program, OpId op);

/// Returns whether a part of such a value along this dim is one range of its elements.
bool is_one_range(const Shape& whole, std::int64_t dim);

}  // namespace weft
