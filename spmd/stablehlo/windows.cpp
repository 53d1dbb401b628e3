// Lowers reductions over windows.

#include <algorithm>

#include <fmt/format.h>

#include "spmd/ops/elements.hpp"
#include "spmd/program/window.hpp"
#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

/// Returns the attributes of windows. The padding is 0 if `has_padding` is false, because the
/// operand then contains its padding.
std::string windows_text(std::span<const WindowDim> dims, bool has_padding) {
  HloDims sizes, strides, dilations;
  std::vector<HloDims> padding;
  for (const WindowDim& dim : dims) {
    sizes.push_back(dim.size);
    strides.push_back(dim.stride);
    dilations.push_back(dim.dilation);
    padding.push_back(has_padding ? HloDims{dim.low, dim.high} : HloDims{0, 0});
  }
  const bool dilates = std::ranges::any_of(dilations, [](std::int64_t d) { return d != 1; });
  return fmt::format("window_dimensions = {}, window_strides = {}{}, padding = {}",
                     hlo_array(sizes), hlo_array(strides),
                     dilates ? ", window_dilations = " + hlo_array(dilations) : "",
                     hlo_rows(padding));
}

/// Returns the operand with its padding and with the gaps between its elements. `least_end`, unless
/// empty, has the sizes of the result, which then replace the padding at the ends.
HloValue padded_operand(HloWriter& w, const HloValue& x, std::span<const WindowDim> dims,
                        double padding, const HloDims& least_end = {}) {
  HloDims low, high, interior;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t size = dims[i].low + dilated(x.type.dims[i], dims[i].base_dilation);
    low.push_back(dims[i].low);
    high.push_back(least_end.empty() ? dims[i].high : least_end[i] - size);
    interior.push_back(dims[i].base_dilation - 1);
  }
  return w.pad(x, w.splat(x.type.with(HloDims()), padding), low, high, interior);
}

HloValue lower_reduce_window(const HloOp& op) {
  HloWriter& w = op.write();
  const WindowReduction reduction = window_reduction_of(op.attrs());
  const double start = neutral(reduction.kind, op.dtype());
  if (op.type.num_elements() == 0 || op.operand_type(0).num_elements() == 0) {
    return w.splat(op.type, start);
  }
  if (op.type.rank() == 0) return op.operand(0);
  const bool adds_halves = reduction.kind == ReduceKind::add && op.type.is_half();
  HloValue x = adds_halves ? w.convert(op.operand(0), "f32") : op.operand(0);
  // Not every compiler supports windows over dilated operands, or negative padding.
  const bool is_plain = std::ranges::all_of(reduction.dims, [](const WindowDim& dim) {
    return dim.base_dilation == 1 && dim.low >= 0 && dim.high >= 0;
  });
  if (!is_plain) x = padded_operand(w, x, reduction.dims, start);
  const std::string combine = w.combiner(combiner_of(reduction.kind, op.dtype()), x.type.element);
  const HloValue result =
      w.op("reduce_window", {x, w.splat(x.type.with(HloDims()), start)},
           op.type.with(x.type.element), windows_text(reduction.dims, is_plain), {combine});
  return w.convert(result, op.type.element);
}

/// Returns whether `next` replaces `best`: because it is larger (smaller for min), or the first
/// NaN.
HloValue beats(HloWriter& w, ReduceKind kind, const HloValue& next, const HloValue& best) {
  const HloValue better = w.compare(kind == ReduceKind::max ? "GT" : "LT", {next, best});
  if (!next.type.is_floating()) return better;
  const HloValue is_nan =
      w.binary("and", {w.compare("NE", {next, next}), w.compare("EQ", {best, best})});
  return w.binary("or", {better, is_nan});
}

/// Computes the number of the element that each window selects. Visits the places of a window one
/// by one, for all windows at the same time. StableHLO's select_and_scatter can't be used for this,
/// because it has no dilations.
class SelectionWriter {
 public:
  SelectionWriter(const HloOp& op, const WindowReduction& reduction)
      : w_(op.write()), op_(op), reduction_(reduction) {}

  HloValue run() {
    const HloType& x_type = op_.operand_type(0);
    HloDims ends;
    for (std::size_t i = 0; i < reduction_.dims.size(); ++i) {
      const WindowDim& dim = reduction_.dims[i];
      ends.push_back(dilated(windows()[i], dim.stride) + dilated(dim.size, dim.dilation) - 1);
    }
    const HloType flat{"i32", {x_type.num_elements()}};
    const HloValue numbers = w_.reshape(w_.iota(flat, 0), x_type.dims);
    x_ = padded_operand(w_, op_.operand(0), reduction_.dims, 0, ends);
    numbers_ = padded_operand(w_, numbers, reduction_.dims, -1, ends);
    HloDims place(reduction_.dims.size(), 0);
    HloValue best = at(x_, place);
    HloValue number = at(numbers_, place);
    while (advance(place)) {
      const HloValue next = at(x_, place);
      const HloValue next_number = at(numbers_, place);
      const HloValue none = w_.splat(number.type, -1);
      const HloValue wins = w_.binary(
          "or", {w_.compare("EQ", {number, none}), beats(w_, reduction_.kind, next, best)});
      const HloValue takes = w_.binary("and", {w_.compare("NE", {next_number, none}), wins});
      best = w_.select({takes, next, best});
      number = w_.select({takes, next_number, number});
    }
    return number;
  }

 private:
  const HloDims& windows() const { return op_.operand_type(1).dims; }
  bool advance(HloDims& place) const {
    for (std::size_t i = place.size(); i-- > 0;) {
      if (++place[i] < reduction_.dims[i].size) return true;
      place[i] = 0;
    }
    return false;
  }
  HloValue at(const HloValue& padded, const HloDims& place) {
    HloDims start, limit, stride;
    for (std::size_t i = 0; i < place.size(); ++i) {
      start.push_back(place[i] * reduction_.dims[i].dilation);
      limit.push_back(start[i] + dilated(windows()[i], reduction_.dims[i].stride));
      stride.push_back(reduction_.dims[i].stride);
    }
    return w_.slice(padded, start, limit, stride);
  }

  HloWriter& w_;
  const HloOp& op_;
  const WindowReduction& reduction_;
  HloValue x_{};
  HloValue numbers_{};
};

/// Adds update i to element numbers[i] of a tensor of zeros. Drops updates with the number -1.
HloValue scattered_flat(HloWriter& w, const HloValue& numbers, const HloValue& updates,
                        const HloType& type) {
  const std::int64_t count = updates.type.num_elements();
  const HloType flat{updates.type.element, {type.num_elements()}};
  const std::string sum = w.combiner("add", updates.type.element);
  const HloValue sums =
      w.op("scatter",
           {w.splat(flat, 0), w.reshape(numbers, {count, 1}), w.reshape(updates, {count})}, flat,
           "indices_are_sorted = false, scatter_dimension_numbers = "
           "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
           "index_vector_dim = 1>, unique_indices = false",
           {sum});
  return w.reshape(sums, type.dims);
}

/// Returns the region that decides whether the element selected so far stays: if `a >= b` (`<=` for
/// min), or if a is NaN.
std::string selector(HloWriter& w, ReduceKind kind, const HloType& type) {
  const HloType scalar = type.with(HloDims());
  return w.region({scalar, scalar}, [&](const HloWriter::Values& pair) {
    const HloValue stays = w.compare(kind == ReduceKind::max ? "GE" : "LE", {pair[0], pair[1]});
    if (!type.is_floating()) return HloWriter::Values{stays};
    return HloWriter::Values{w.binary("or", {stays, w.compare("NE", {pair[0], pair[0]})})};
  });
}

/// Lowers to StableHLO's select_and_scatter. The operand is padded before, because XLA may select
/// its own padding. A -inf (inf for min) can't be distinguished from padding.
HloValue selected_and_scattered(const HloOp& op, const WindowReduction& reduction,
                                const HloValue& y) {
  HloWriter& w = op.write();
  // select_and_scatter needs operands of one type. Halves keep their order as f32.
  const HloValue x = padded_operand(w, w.convert(op.operand(0), y.type.element), reduction.dims,
                                    neutral(reduction.kind, op.dtype()));
  const HloValue zero = w.splat(y.type.with(HloDims()), 0);
  const HloValue result =
      w.op("select_and_scatter", {x, y, zero}, x.type, windows_text(reduction.dims, false),
           {selector(w, reduction.kind, x.type), w.combiner("add", y.type.element)});
  HloDims low, high;
  for (const WindowDim& dim : reduction.dims) {
    low.push_back(-dim.low);
    high.push_back(-dim.high);
  }
  return w.pad(result, zero, low, high, HloDims(low.size(), 0));
}

HloValue lower_select_and_scatter(const HloOp& op) {
  HloWriter& w = op.write();
  if (op.type.num_elements() == 0 || op.operand_type(1).num_elements() == 0) return op.zeros();
  if (op.type.rank() == 0) return op.operand(1);
  const WindowReduction reduction = window_reduction_of(op.attrs());
  const bool dilates = std::ranges::any_of(reduction.dims, [](const WindowDim& dim) {
    return dim.base_dilation != 1 || dim.dilation != 1;
  });
  const HloValue y = op.type.is_half() ? w.convert(op.operand(1), "f32") : op.operand(1);
  const HloValue sums = dilates
                            ? scattered_flat(w, SelectionWriter(op, reduction).run(), y, op.type)
                            : selected_and_scattered(op, reduction, y);
  return w.convert(sums, op.type.element);
}

}  // namespace

constexpr Lowering lowerings::reduce_window = lower_reduce_window;
constexpr Lowering lowerings::select_and_scatter = lower_select_and_scatter;

}  // namespace weft
