// Lowers sorting, and the ops that read or write at positions given by an operand.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

std::string dims_text(const DimList& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

/// Returns, for each index, whether it is in 0..size-1.
HloValue is_within(HloWriter& w, const HloValue& index, std::int64_t size) {
  return w.binary("and",
                  {w.compare("GE", {index, w.splat(index.type, 0)}),
                   w.compare("LT", {index, w.splat(index.type, static_cast<double>(size))})});
}

/// Returns the indices in operand `index`, counted from the first row of the chip's part.
HloValue index_in_part(const HloOp& op, std::size_t index) {
  if (op.is_whole(0)) return op.operand(index);
  HloWriter& w = op.write();
  const HloValue first = op.context.of_position(op.firsts(0));
  const HloValue wide = w.convert(op.operand(index), first.type.element);
  return w.binary("subtract", {wide, w.broadcast(first, wide.type)});
}

/// Converts halves to f32, because a sum of halves is rounded only at the end.
HloValue without_halves(HloWriter& w, const HloValue& x) {
  return x.type.is_half() ? w.convert(x, "f32") : x;
}

HloValue lower_gather(const HloOp& op) {
  HloWriter& w = op.write();
  const HloType& table = op.operand_type(0);
  if (table.num_elements() == 0 || op.type.num_elements() == 0) return op.zeros();
  const HloValue index = index_in_part(op, 1);
  const HloValue is_inside = is_within(w, index, table.dims[0]);
  const int index_rank = index.type.rank();
  HloDims sizes = table.dims;
  sizes[0] = 1;
  const HloValue rows = w.op(
      "gather", {op.operand(0), index}, op.type,
      fmt::format("dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = "
                  "[0], start_index_map = [0], index_vector_dim = {}>, indices_are_sorted = false, "
                  "slice_sizes = {}",
                  dims_text(consecutive_dims(index_rank, table.rank() - 1)), index_rank,
                  hlo_array(sizes)));
  const HloValue all_inside =
      w.broadcast(is_inside, op.type.with("i1"), consecutive_dims(0, index_rank));
  return w.select({all_inside, rows, op.zeros()});
}

HloValue lower_scatter(const HloOp& op) {
  HloWriter& w = op.write();
  if (op.operand_type(1).num_elements() == 0 || op.type.num_elements() == 0) return op.zeros();
  const HloValue index = index_in_part(op, 0);
  const HloValue updates = without_halves(w, op.operand(1));
  const int index_rank = index.type.rank();
  const std::string sum = w.combiner("add", updates.type.element);
  const HloValue sums =
      w.op("scatter", {w.splat(op.type.with(updates.type.element), 0), index, updates},
           op.type.with(updates.type.element),
           fmt::format("indices_are_sorted = false, scatter_dimension_numbers = "
                       "#stablehlo.scatter<update_window_dims = {}, inserted_window_dims = [0], "
                       "scatter_dims_to_operand_dims = [0], index_vector_dim = {}>, "
                       "unique_indices = false",
                       dims_text(consecutive_dims(index_rank, updates.type.rank() - index_rank)),
                       index_rank),
           {sum});
  return w.convert(sums, op.type.element);
}

/// Returns x[.., index[.., k]] along the last dim, or 0 where the index is outside.
HloValue taken_along(HloWriter& w, const HloValue& x, const HloValue& index) {
  const HloType type = index.type.with(x.type.element);
  const HloValue zeros = w.splat(type, 0);
  if (x.type.num_elements() == 0 || type.num_elements() == 0) return zeros;
  const int last = x.type.rank() - 1;
  const HloValue is_inside = is_within(w, index, x.type.dims.back());
  const std::string rows = dims_text(consecutive_dims(0, last));
  const HloValue taken = w.op(
      "gather", {x, index}, type,
      fmt::format("dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [{0}], "
                  "operand_batching_dims = {1}, start_indices_batching_dims = {1}, "
                  "start_index_map = [{0}], index_vector_dim = {2}>, indices_are_sorted = false, "
                  "slice_sizes = {3}",
                  last, rows, last + 1, hlo_array(HloDims(x.type.dims.size(), 1))));
  return w.select({is_inside, taken, zeros});
}

HloValue lower_take_along(const HloOp& op) {
  return taken_along(op.write(), op.operand(0), op.operand(1));
}

HloValue lower_scatter_along(const HloOp& op) {
  HloWriter& w = op.write();
  if (op.operand_type(1).num_elements() == 0 || op.type.num_elements() == 0) return op.zeros();
  const HloValue updates = without_halves(w, op.operand(1));
  const HloType type = op.type.with(updates.type.element);
  const int last = type.rank() - 1;
  const std::string sum = w.combiner("add", updates.type.element);
  const HloValue sums = w.op(
      "scatter", {w.splat(type, 0), op.operand(0), updates}, type,
      fmt::format("indices_are_sorted = false, scatter_dimension_numbers = "
                  "#stablehlo.scatter<inserted_window_dims = [{0}], input_batching_dims = {1}, "
                  "scatter_indices_batching_dims = {1}, scatter_dims_to_operand_dims = [{0}], "
                  "index_vector_dim = {2}>, unique_indices = false",
                  last, dims_text(consecutive_dims(0, last)), last + 1),
      {sum});
  return w.convert(sums, op.type.element);
}

/// Returns whether a comes before b in ascending order, in which NaN is the largest.
HloValue is_before(HloWriter& w, const HloValue& a, const HloValue& b) {
  const HloValue less = w.compare("LT", {a, b});
  if (!a.type.is_floating()) return less;
  const HloValue only_b = w.binary("and", {w.compare("EQ", {a, a}), w.compare("NE", {b, b})});
  return w.binary("or", {less, only_b});
}

HloValue lower_argsort(const HloOp& op) {
  HloWriter& w = op.write();
  const HloValue& x = op.operand(0);
  const HloType places = x.type.with("i32");
  const int last = x.type.rank() - 1;
  const bool descending = op.attrs()[0] != 0;
  const HloType element = x.type.with(HloDims());
  const HloType place = places.with(HloDims());
  const std::string order =
      w.region({element, element, place, place}, [&](const HloWriter::Values& v) {
        return HloWriter::Values{descending ? is_before(w, v[1], v[0]) : is_before(w, v[0], v[1])};
      });
  const HloValue sorted =
      w.ops("sort", {x, w.iota(places, last)}, {x.type, places},
            fmt::format("dimension = {} : i64, is_stable = true", last), {order})[1];
  return op.operands.size() == 1 ? sorted : taken_along(w, sorted, op.operand(1));
}

/// Lowers y[i] = a[i] y[i - 1] + b[i]. Each round doubles the number of elements that a sum covers,
/// so few rounds are needed. A loop would need one for each element.
HloValue lower_recurrence(const HloOp& op) {
  HloWriter& w = op.write();
  HloValue a = without_halves(w, op.operand(0));
  HloValue b = without_halves(w, op.operand(1));
  const bool reversed = op.attrs()[0] != 0;
  const HloValue one = w.splat(a.type.with(HloDims()), 1);
  const HloValue zero = w.splat(a.type.with(HloDims()), 0);
  const HloDims none(a.type.dims.size(), 0);
  for (std::int64_t step = 1; step < a.type.dims.back(); step *= 2) {
    HloDims low = none;
    HloDims high = none;
    low.back() = reversed ? -step : step;
    high.back() = reversed ? step : -step;
    const HloValue before_b = w.pad(b, zero, low, high, none);
    b = w.binary("add", {w.binary("multiply", {a, before_b}), b});
    if (2 * step < a.type.dims.back()) {
      a = w.binary("multiply", {a, w.pad(a, one, low, high, none)});
    }
  }
  return w.convert(b, op.type.element);
}

}  // namespace

constexpr Lowering lowerings::gather = lower_gather;
constexpr Lowering lowerings::scatter = lower_scatter;
constexpr Lowering lowerings::take_along = lower_take_along;
constexpr Lowering lowerings::scatter_along = lower_scatter_along;
constexpr Lowering lowerings::argsort = lower_argsort;
constexpr Lowering lowerings::linear_recurrence = lower_recurrence;

}  // namespace weft
