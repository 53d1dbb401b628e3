/// Defines the reductions over windows.

#include <algorithm>
#include <cmath>
#include <limits>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/window_axes.hpp"

namespace weft {

std::int64_t infer::expect_windows(const OpSignature& op, int dim, const WindowDim& window,
                                   std::int64_t size) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto counts = [](std::int64_t number) { return number >= 1 && number <= kMost; };
  if (!counts(window.size) || !counts(window.stride) || !counts(window.base_dilation) ||
      !counts(window.dilation)) {
    reject(op,
           "dim {} has windows of size {}, stride {}, base dilation {}, dilation {}: expected 1 or "
           "more of each",
           dim, window.size, window.stride, window.base_dilation, window.dilation);
  }
  const auto pads = [](std::int64_t number) { return number >= -kMost && number <= kMost; };
  if (!pads(window.low) || !pads(window.high) || window.size > kMost / window.dilation ||
      size > kMost / window.base_dilation) {
    reject(op, "dim {} with padding {}, {} and dilations {}, {} spans more than 2^40 elements", dim,
           window.low, window.high, window.base_dilation, window.dilation);
  }
  return window_count(window, size);
}

namespace {

using namespace infer;

// The following functions infer the type of an op's result.

/// Returns the result's type of a reduce_window of operand 0 with these attributes.
TensorType reduced(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  const auto num_dims = static_cast<std::size_t>(x.shape.size());
  if (op.attrs.size() != 1 + 6 * num_dims) {
    reject(op, "has {} attribute words; it takes a kind and 6 for each of the {} dims",
           op.attrs.size(), num_dims);
  }
  expect_reducible(op, 0);
  const WindowReduction reduction = window_reduction_of(op.attrs);
  std::vector<std::int64_t> shape;
  for (std::size_t dim = 0; dim < num_dims; ++dim) {
    const auto d = static_cast<int>(dim);
    shape.push_back(expect_windows(op, d, reduction.dims[dim], x.shape[d]));
  }
  return {x.dtype, Shape(Words(shape))};
}

TensorType scattered(const OpSignature& op) {
  const TensorType windows = reduced(op);
  if (static_cast<ReduceKind>(op.attrs[0]) == ReduceKind::add || windows.dtype == DType::pred) {
    reject(op, "expected max or min of a numeric dtype, but got {} of {}",
           to_string(static_cast<ReduceKind>(op.attrs[0])), to_string(windows.dtype));
  }
  if (op.operands[1] != windows) {
    reject(op, "the second operand must be {}, one element for each window", windows.to_string());
  }
  return op.operands[0];
}

// The following functions return factor rules. A dim can be sharded if its windows have only one
// element.

FactorRule reduce_window_rule(const Program& program, OpId op) {
  const Shape& x = program.shape(program.op_operands(op)[0]);
  const Shape& y = program.shape(program.result(op));
  const WindowReduction reduction = window_reduction_of(program.op_attrs(op));
  RuleMaker rule;
  for (const Shape* shape : {&x, &y}) rule.add_tensor(*shape);
  for (int dim = 0; dim < x.size(); ++dim) {
    const bool is_whole = reduction.dims[static_cast<std::size_t>(dim)] == WindowDim{};
    const auto type = is_whole ? FactorType::pass_through : FactorType::need_replication;
    const int factor = rule.add_factor(x[dim], type);
    rule.put(0, dim, factor);
    rule.put(1, dim, is_whole ? factor : rule.add_factor(y[dim], type));
  }
  return rule.take();
}

FactorRule select_and_scatter_rule(const Program& program, OpId op) {
  const Shape& x = program.shape(program.op_operands(op)[0]);
  const Shape& y = program.shape(program.op_operands(op)[1]);
  const WindowReduction reduction = window_reduction_of(program.op_attrs(op));
  RuleMaker rule;
  for (const Shape* shape : {&x, &y, &x}) rule.add_tensor(*shape);
  for (int dim = 0; dim < x.size(); ++dim) {
    const bool is_whole = reduction.dims[static_cast<std::size_t>(dim)] == WindowDim{};
    const auto type = is_whole ? FactorType::pass_through : FactorType::need_replication;
    const int factor = rule.add_factor(x[dim], type);
    rule.put(0, dim, factor);
    rule.put(1, dim, is_whole ? factor : rule.add_factor(y[dim], type));
    rule.put(2, dim, factor);
  }
  return rule.take();
}

// The following functions append the gradients of ops.

/// Returns whether the operand or g has no elements. Then the windows would be empty, so the
/// gradient can't be computed with them.
bool is_empty(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  return builder.type(op.operands[index]).num_elements() == 0 ||
         builder.type(g).num_elements() == 0;
}

ValueId reduce_window_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  const ValueId x = op.operands[0];
  if (is_empty(builder, op, 0, g)) return builder.constant(0, builder.type(x));
  WindowReduction reduction = window_reduction_of(op.attrs);
  if (reduction.kind != ReduceKind::add) return builder.select_and_scatter(x, g, reduction);
  for (std::size_t dim = 0; dim < reduction.dims.size(); ++dim) {
    const auto d = static_cast<int>(dim);
    reduction.dims[dim] =
        transposed(reduction.dims[dim], builder.type(x).shape[d], builder.type(g).shape[d]);
  }
  return builder.reduce_window(g, reduction);
}

/// Splits the elements of an operand by their position in windows: at() returns the elements at one
/// position.
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

  /// Returns, for each window, the element at position `place` of the window.
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

/// Moves to the next position in a window, in row-major order; returns false after the last.
bool next_place(DimList& place, std::span<const WindowDim> dims) {
  for (std::size_t dim = dims.size(); dim-- > 0;) {
    if (++place[dim] < dims[dim].size) return true;
    place[dim] = 0;
  }
  return false;
}

/// Returns the cotangent of y: for each window, the element of g at the position that the window
/// selected. Padding has the value -inf (inf for a minimum); an element of this value is treated
/// like padding.
ValueId scattered_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  // x has no cotangent, because x affects only the selection, which is piecewise constant.
  if (index == 0 || is_empty(builder, op, index, g)) {
    return builder.constant(0, builder.type(op.operands[index]));
  }
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

// The following functions compute the values of ops, for the reference interpreters.

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Returns whether x replaces `best` as the extremum. NaN replaces any number.
bool beats(ReduceKind kind, double x, double best) {
  if (std::isnan(best)) return false;
  return std::isnan(x) || (kind == ReduceKind::max ? x > best : x < best);
}

Elements reduced_elements(const Evaluation& e) {
  const WindowReduction reduction = window_reduction_of(e.attrs());
  Elements result(index(e.type().num_elements()), neutral(reduction.kind, e.type().dtype));
  for (const Meeting& m : meetings(window_axes(reduction, e.operand_shape(0), e.shape()))) {
    double& total = result[index(m.window)];
    total = combine(reduction.kind, total, e.operand(0)[index(m.operand)]);
  }
  return result;
}

Elements scattered_elements(const Evaluation& e) {
  const WindowReduction reduction = window_reduction_of(e.attrs());
  const Elements& x = e.operand(0);
  const Elements& y = e.operand(1);
  std::vector<std::int64_t> best(y.size(), -1);
  for (const Meeting& m :
       meetings(window_axes(reduction, e.operand_shape(0), e.operand_shape(1)))) {
    std::int64_t& place = best[index(m.window)];
    if (place < 0 || beats(reduction.kind, x[index(m.operand)], x[index(place)])) {
      place = m.operand;
    }
  }
  Elements result(x.size(), 0);
  for (std::size_t window = 0; window < y.size(); ++window) {
    if (best[window] >= 0) result[index(best[window])] += y[window];
  }
  return result;
}

/// Counts the operand's elements in all windows, each as often as windows contain it.
std::int64_t elements_in_windows(const Program& program, OpId op, const Shape& windows) {
  const Shape& x = program.shape(program.op_operands(op)[0]);
  const WindowReduction reduction = window_reduction_of(program.op_attrs(op));
  std::int64_t count = 1;
  for (int dim = 0; dim < x.size(); ++dim) {
    const WindowDim& window = reduction.dims[static_cast<std::size_t>(dim)];
    count *= count_elements_under(window, x[dim], windows[dim]);
  }
  return count;
}
std::int64_t reduce_window_flops(const Program& program, OpId op, const Mesh&) {
  return elements_in_windows(program, op, program.shape(program.result(op)));
}
std::int64_t select_and_scatter_flops(const Program& program, OpId op, const Mesh&) {
  const Shape& windows = program.shape(program.op_operands(op)[1]);
  return elements_in_windows(program, op, windows) + windows.num_elements();
}

constexpr Attr kWindows[] = {reduce_kind(), list("size"),          list("stride"),  list("low"),
                             list("high"),  list("base_dilation"), list("dilation")};

}  // namespace

constexpr OpRow rows::reduce_window{
    .doc = "The sum, maximum or minimum of each window (window.hpp).",
    .operands = operands(1),
    .attrs = Attrs(kWindows),
    .infer = reduced,
    .rule = reduce_window_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = reduce_window_cotangent,
    .evaluate = reduced_elements,
    .decompose = none,
    .cost = reduce_window_flops,
    .traits = Traits{.reorder = Reorder::window},
};

constexpr OpRow rows::select_and_scatter{
    .doc =
        "(x, y): zeros, with each element of y added at the maximum (minimum) of its window in x. "
        "In a tie, the first element in row-major order counts.",
    .operands = operands(2),
    .attrs = Attrs(kWindows),
    .infer = scattered,
    .rule = select_and_scatter_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = scattered_cotangent,
    .evaluate = scattered_elements,
    .decompose = none,
    .cost = select_and_scatter_flops,
    .traits = Traits{.reorder = Reorder::window},
};

}  // namespace weft
