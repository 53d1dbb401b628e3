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
    default:
      fail(Errc::invalid_argument,
           "grad: {} has no gradient, so that max and min over windows have no second one (at {})",
           to_string(op.kind), builder.program().locs[builder.loc()]);
  }
}

}  // namespace weft
