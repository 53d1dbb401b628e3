#pragma once
/// Spreads and views: values that repeat the elements of a smaller one, or are a range of those of
/// a larger one, which a loop over elementwise ops reads in their place.

#include <cstdint>
#include <optional>

#include "spmd/program/program.hpp"

namespace weft {

/// The result of a broadcast_in_dim, as a matrix: either each row is the operand, or each element
/// of the operand fills a row.
struct Spread {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool repeats_row = false;

  bool operator==(const Spread&) const = default;
};

/// Shorter rows aren't worth a loop of their own.
inline constexpr std::int64_t kSpreadColumnsMin = 32;

/// Empty for another op, another broadcast, of a loop's carry, and for short rows.
std::optional<Spread> spread_of(const Program& program, OpId op);

/// Whether the op's result is one range of its operand, where it can be read: a reshape, or an
/// all_slice that doesn't skip elements. Not of a loop's carry.
bool is_view(const Program& program, OpId op);
/// Whether a step that runs `reader` alone may read the view in place. It expects aligned operands,
/// and reads the operand's elements, as no collective and no border of a loop or branch does.
bool may_read_in_place(const Program& program, OpId reader, OpId view);

/// Whether loops make the op's result for themselves, as they read it: a fill, a spread or a view.
bool is_made_by_loops(const Program& program, OpId op);

/// Whether a part along this dim of a value of this shape is one range of its elements.
bool is_one_range(const Shape& whole, std::int64_t dim);

}  // namespace weft
