#pragma once
/// Finds spreads and views. A spread repeats the elements of a smaller value, and a view is a range
/// of the elements of a larger one. A loop of elementwise ops reads the smaller or larger value
/// instead of the spread or the view.

#include <cstdint>
#include <optional>

#include "spmd/program/program.hpp"

namespace weft {

/// The result of a broadcast_in_dim, regarded as a matrix: either each row is the operand, or each
/// row repeats one element of the operand.
struct Spread {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool repeats_row = false;

  bool operator==(const Spread&) const = default;
};

/// The least length of a spread's rows. For shorter rows, a loop for each row takes more time than
/// is saved.
inline constexpr std::int64_t kSpreadColumnsMin = 32;

/// Returns the spread that the op makes. Returns nothing for other ops, other broadcasts, the
/// broadcast of a loop's carry, and rows of less than kSpreadColumnsMin elements.
std::optional<Spread> spread_of(const Program& program, OpId op);

/// Returns whether the op is a view: its result is one contiguous range of its operand. A reshape
/// is a view, and so is an all_slice that doesn't skip elements, unless the operand is a loop's
/// carry.
bool is_view(const Program& program, OpId op);
/// Returns whether `reader`, if it runs in a step of its own, may read the view in place. The view
/// must be aligned, and the reader can't be a collective or at the border of a loop or a branch.
bool may_read_in_place(const Program& program, OpId reader, OpId view);

/// Returns whether the op is a fill, a spread or a view. A loop that needs the result of such an op
/// computes it itself.
bool is_made_by_loops(const Program& program, OpId op);

/// Returns whether each part of a tensor of this shape along `dim` is one contiguous range of
/// elements.
bool is_one_range(const Shape& whole, std::int64_t dim);

}  // namespace weft
