#include <algorithm>
#include <limits>

#include <weft/spmd/error.hpp>
#include <weft/spmd/passes/vjp.hpp>
#include <weft/spmd/program/window.hpp>

namespace weft {
namespace {

/// The same convolution from the result's side: windows of g, with what rhs does turned round.
ValueId lhs_cotangent(Builder& builder, const ForwardOp& op, Convolution c, ValueId g) {
  const Shape& lhs = builder.type(op.operands[0]).shape;
  const Shape& windows = builder.type(g).shape;
  for (std::size_t i = 0; i < c.window.size(); ++i) {
    c.window[i] = transposed(c.window[i], lhs[static_cast<int>(c.lhs[2 + i])],
                             windows[static_cast<int>(c.result[2 + i])]);
  }
  std::swap(c.lhs, c.result);
  std::swap(c.rhs[0], c.rhs[1]);
  if (!c.group.empty()) std::swap(c.group[0], c.group[2]);
  c.reversed = !c.reversed;
  return builder.convolution(g, op.operands[1], c);
}

/// Windows of lhs as large as g, batch and feature having changed places. Where rhs is read from
/// its end it's the other way round: windows of g as large as lhs.
ValueId rhs_cotangent(Builder& builder, const ForwardOp& op, const Convolution& c, ValueId g) {
  const ValueId x = op.operands[0];
  const Shape& lhs = builder.type(x).shape;
  const Shape& windows = builder.type(g).shape;
  const auto swapped = [](std::vector<std::int64_t> side) {
    std::swap(side[0], side[1]);
    return side;
  };
  Convolution back{.lhs = c.reversed ? swapped(c.result) : swapped(c.lhs),
                   .rhs = c.reversed ? c.lhs : c.result,
                   .result = c.reversed ? swapped(c.rhs) : c.rhs};
  if (!c.group.empty()) {
    back.group = {c.group[c.reversed ? 2 : 0], c.group[c.reversed ? 0 : 2], c.group[1]};
  }
  for (std::size_t i = 0; i < c.window.size(); ++i) {
    const std::int64_t lhs_size = lhs[static_cast<int>(c.lhs[2 + i])];
    const std::int64_t count = windows[static_cast<int>(c.result[2 + i])];
    const WindowDim w = c.reversed ? transposed(c.window[i], lhs_size, count) : c.window[i];
    const std::int64_t base = dilated(c.reversed ? count : lhs_size, w.base_dilation);
    const std::int64_t span = dilated(c.reversed ? lhs_size : count, w.stride);
    back.window.push_back({.stride = w.dilation,
                           .low = w.low,
                           .high = (w.size - 1) * w.dilation + span - w.low - base,
                           .base_dilation = w.base_dilation,
                           .dilation = w.stride});
  }
  return c.reversed ? builder.convolution(g, x, back) : builder.convolution(x, g, back);
}

ValueId convolution_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const Convolution c = convolution_of(op.attrs, builder.type(op.operands[1]).shape);
  return index == 0 ? lhs_cotangent(builder, op, c, g) : rhs_cotangent(builder, op, c, g);
}

ValueId reduce_window_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  WindowReduction reduction = window_reduction_of(op.attrs);
  const ValueId x = op.operands[0];
  if (reduction.kind != ReduceKind::add) return builder.select_and_scatter(x, g, reduction);
  for (std::size_t dim = 0; dim < reduction.dims.size(); ++dim) {
    const auto d = static_cast<int>(dim);
    reduction.dims[dim] =
        transposed(reduction.dims[dim], builder.type(x).shape[d], builder.type(g).shape[d]);
  }
  return builder.reduce_window(g, reduction);
}

/// An operand as windows see it: their elements, by their place in the window.
class WindowParts {
 public:
  WindowParts(Builder& builder, ValueId x, double padding, std::span<const WindowDim> dims,
              const Shape& windows)
      : builder_(builder), dims_(dims), windows_(windows) {
    const TensorType type = builder.type(x);
    DimList low, high, interior;
    for (std::size_t dim = 0; dim < dims.size(); ++dim) {
      const WindowDim& w = dims[dim];
      const auto d = static_cast<int>(dim);
      const std::int64_t end =
          dilated(windows[d], w.stride) + dilated(w.size, w.dilation) - 1 - w.low;
      low.push_back(std::max<std::int64_t>(w.low, 0));
      high.push_back(std::max<std::int64_t>(end - dilated(type.shape[d], w.base_dilation), 0));
      interior.push_back(w.base_dilation - 1);
    }
    padded_ = builder.pad(x, builder.constant(padding, {type.dtype, {}}), low, high, interior);
  }

  /// Element `place` of each window.
  ValueId at(const DimList& place) const {
    DimList start, limit, stride;
    for (std::size_t dim = 0; dim < dims_.size(); ++dim) {
      const WindowDim& w = dims_[dim];
      start.push_back(place[dim] * w.dilation + std::max<std::int64_t>(-w.low, 0));
      limit.push_back(start[dim] + dilated(windows_[static_cast<int>(dim)], w.stride));
      stride.push_back(w.stride);
    }
    return builder_.slice(padded_, start, limit, stride);
  }

 private:
  Builder& builder_;
  std::span<const WindowDim> dims_;
  const Shape windows_;
  ValueId padded_;
};

/// The next place in a window, in row-major order; false behind the last.
bool next_place(DimList& place, std::span<const WindowDim> dims) {
  for (std::size_t dim = dims.size(); dim-- > 0;) {
    if (++place[dim] < dims[dim].size) return true;
    place[dim] = 0;
  }
  return false;
}

/// What of `g` each window gets back: what lies where its element was selected. Padding is -inf (of
/// a minimum inf), and an element that is so too isn't told from it.
ValueId scattered_cotangent(Builder& builder, const ForwardOp& op, ValueId g) {
  const WindowReduction reduction = window_reduction_of(op.attrs);
  const bool max = reduction.kind == ReduceKind::max;
  const Shape windows = builder.type(op.operands[1]).shape;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const WindowParts x(builder, op.operands[0], max ? -kInfinity : kInfinity, reduction.dims,
                      windows);
  const WindowParts from(builder, g, 0, reduction.dims, windows);
  DimList place(reduction.dims.size());
  ValueId best = x.at(place);
  ValueId result = from.at(place);
  while (next_place(place, reduction.dims)) {
    const ValueId next = x.at(place);
    const ValueId found = from.at(place);
    const ValueId first_nan =
        builder.binary(OpKind::logical_and, builder.compare(CompareDirection::ne, next, next),
                       builder.compare(CompareDirection::eq, best, best));
    const ValueId better =
        builder.compare(max ? CompareDirection::gt : CompareDirection::lt, next, best);
    for (const ValueId beats : {first_nan, better}) {
      best = builder.select(beats, next, best);
      result = builder.select(beats, found, result);
    }
  }
  return result;
}

}  // namespace

ValueId window_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const TensorType type = builder.type(op.operands[index]);
  // Where nothing was selected or summed a window back would be empty; where only the selection
  // depends on the operand, it is a step function of it.
  const bool is_selector = op.kind == OpKind::select_and_scatter && index == 0;
  if (is_selector || type.num_elements() == 0 || builder.type(g).num_elements() == 0) {
    return builder.constant(0, type);
  }
  switch (op.kind) {
    case OpKind::convolution: return convolution_cotangent(builder, op, index, g);
    case OpKind::reduce_window: return reduce_window_cotangent(builder, op, g);
    default: return scattered_cotangent(builder, op, g);
  }
}

}  // namespace weft
