/// Defines the convolution op.

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/window_axes.hpp"

namespace weft {
namespace {

using namespace infer;

// The following functions infer the type of an op's result.

/// Checks that the lists contain each dim of the operand exactly once.
void expect_sides(const OpSignature& op, std::string_view what, int num_dims, Words side,
                  Words group) {
  std::vector<std::int64_t> all(side.begin(), side.end());
  all.insert(all.end(), group.begin(), group.end());
  std::uint32_t seen = 0;
  for (const std::int64_t dim : all) {
    if (dim < 0 || dim >= num_dims || (seen >> dim & 1U) != 0) break;
    seen |= 1U << dim;
  }
  if (static_cast<int>(all.size()) != num_dims || seen != (1U << num_dims) - 1) {
    reject(op, "[{}] must name each of the {} dims of {} once", fmt::join(all, ","), num_dims,
           what);
  }
}

void expect_equal_sizes(const OpSignature& op, std::string_view what, std::int64_t lhs_dim,
                        std::int64_t rhs_dim) {
  const std::int64_t lhs = op.operands[0].shape[static_cast<int>(lhs_dim)];
  const std::int64_t rhs = op.operands[1].shape[static_cast<int>(rhs_dim)];
  if (lhs != rhs) {
    reject(op, "{} dims {} (size {}) and {} (size {}) must have one size", what, lhs_dim, lhs,
           rhs_dim, rhs);
  }
}

TensorType convolved(const OpSignature& op) {
  const std::size_t spatial = spatial_count(op.attrs.size());
  if (spatial == 0) {
    reject(op, "has {} attribute words, which don't fit 1 to 3 spatial dims", op.attrs.size());
  }
  const TensorType& lhs = op.operands[0];
  const TensorType& rhs = op.operands[1];
  if (lhs.dtype != rhs.dtype || lhs.dtype == DType::pred) {
    reject(op, "both operands must have one dtype, not pred; convert first");
  }
  // The windows' sizes come from rhs, so its dims are checked first.
  const std::size_t side = 2 + spatial;
  const std::size_t flag = 3 * side + 5 * spatial;
  const Words groups = op.attrs.subspan(flag + 1);
  const auto group = [&](std::size_t i) { return groups.empty() ? Words() : groups.subspan(i, 1); };
  expect_sides(op, "lhs", lhs.shape.size(), op.attrs.first(side), group(0));
  expect_sides(op, "rhs", rhs.shape.size(), op.attrs.subspan(side, side), group(1));
  const int num_dims = static_cast<int>(side + (groups.empty() ? 0 : 1));
  expect_sides(op, "the result", num_dims, op.attrs.subspan(2 * side, side), group(2));

  const Convolution c = convolution_of(op.attrs, rhs.shape);
  expect_equal_sizes(op, "input feature", c.lhs[1], c.rhs[0]);
  if (!c.group.empty()) expect_equal_sizes(op, "group", c.group[0], c.group[1]);
  std::array<std::int64_t, kDimCountMax> sizes{};
  const auto size = [&](std::int64_t dim) -> std::int64_t& {
    return sizes[static_cast<std::size_t>(dim)];
  };
  size(c.result[0]) = lhs.shape[static_cast<int>(c.lhs[0])];
  size(c.result[1]) = rhs.shape[static_cast<int>(c.rhs[1])];
  if (!c.group.empty()) size(c.group[2]) = lhs.shape[static_cast<int>(c.group[0])];
  for (std::size_t i = 0; i < spatial; ++i) {
    const auto dim = static_cast<int>(c.lhs[2 + i]);
    size(c.result[2 + i]) = expect_windows(op, dim, c.window[i], lhs.shape[dim]);
  }
  return {lhs.dtype, Shape(Words(sizes).first(static_cast<std::size_t>(num_dims)))};
}

FactorRule convolution_rule(const Program& program, OpId op) {
  const Shape& lhs = program.shape(program.op_operands(op)[0]);
  const Shape& rhs = program.shape(program.op_operands(op)[1]);
  const Shape& result = program.shape(program.result(op));
  const Convolution c = convolution_of(program.op_attrs(op), rhs);
  RuleMaker rule;
  const std::array<const Shape*, 3> shapes{&lhs, &rhs, &result};
  const std::array sides{&c.lhs, &c.rhs, &c.result};
  for (const Shape* shape : shapes) rule.add_tensor(*shape);
  const auto size_of = [](const Shape& shape, std::int64_t dim) {
    return shape[static_cast<int>(dim)];
  };
  const int batch = rule.add_factor(size_of(lhs, c.lhs[0]));
  rule.put(0, c.lhs[0], batch);
  rule.put(2, c.result[0], batch);
  const int output = rule.add_factor(size_of(rhs, c.rhs[1]));
  rule.put(1, c.rhs[1], output);
  rule.put(2, c.result[1], output);
  const int input = rule.add_factor(size_of(lhs, c.lhs[1]), FactorType::reduction);
  rule.put(0, c.lhs[1], input);
  rule.put(1, c.rhs[0], input);
  if (!c.group.empty()) {
    const int group = rule.add_factor(size_of(lhs, c.group[0]));
    for (std::size_t tensor = 0; tensor < 3; ++tensor) rule.put(tensor, c.group[tensor], group);
  }
  for (std::size_t tensor = 0; tensor < 3; ++tensor) {
    for (std::size_t i = 2; i < sides[tensor]->size(); ++i) {
      const std::int64_t dim = (*sides[tensor])[i];
      rule.put(tensor, dim,
               rule.add_factor(size_of(*shapes[tensor], dim), FactorType::need_replication));
    }
  }
  return rule.take();
}

// The following functions append the gradients of ops.

/// Returns the cotangent of lhs: slides windows over g, and reads rhs in the order opposite to the
/// op's.
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

/// Returns the cotangent of rhs: slides windows of g's size over lhs, with batch and feature dims
/// exchanged. If `c.reversed`, slides windows of lhs's size over g instead.
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
  // Without elements in the operand or in g, the windows of the gradient's convolution would be
  // empty.
  const TensorType type = builder.type(op.operands[index]);
  if (type.num_elements() == 0 || builder.type(g).num_elements() == 0) {
    return builder.constant(0, type);
  }
  const Convolution c = convolution_of(op.attrs, builder.type(op.operands[1]).shape);
  return index == 0 ? lhs_cotangent(builder, op, c, g) : rhs_cotangent(builder, op, c, g);
}

// The following functions compute the values of ops, for the reference interpreters.

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Returns the offset of each element along one dim from the first element.
std::vector<std::int64_t> along(const Shape& shape, std::int64_t dim) {
  const std::int64_t size = shape[static_cast<int>(dim)];
  const std::int64_t stride = row_major_strides(shape)[index(dim)];
  return offsets(Words(&size, 1), Words(&stride, 1));
}

Elements convolved_elements(const Evaluation& e) {
  const Elements& lhs = e.operand(0);
  const Elements& rhs = e.operand(1);
  const Shape& lhs_shape = e.operand_shape(0);
  const Shape& rhs_shape = e.operand_shape(1);
  const Shape& shape = e.shape();
  const Convolution c = convolution_of(e.attrs(), rhs_shape);
  const std::vector<Meeting> all = meetings(window_axes(c, lhs_shape, rhs_shape, shape));
  const auto groups = [&](const Shape& of, std::size_t side) {
    return c.group.empty() ? std::vector<std::int64_t>{0} : along(of, c.group[side]);
  };
  const auto lhs_groups = groups(lhs_shape, 0);
  const auto rhs_groups = groups(rhs_shape, 1);
  const auto result_groups = groups(shape, 2);
  const auto lhs_batch = along(lhs_shape, c.lhs[0]);
  const auto result_batch = along(shape, c.result[0]);
  const auto rhs_output = along(rhs_shape, c.rhs[1]);
  const auto result_output = along(shape, c.result[1]);
  const auto lhs_input = along(lhs_shape, c.lhs[1]);
  const auto rhs_input = along(rhs_shape, c.rhs[0]);

  Elements result(index(shape.num_elements()), 0);
  for (std::size_t g = 0; g < result_groups.size(); ++g) {
    for (std::size_t b = 0; b < result_batch.size(); ++b) {
      for (std::size_t o = 0; o < result_output.size(); ++o) {
        for (std::size_t i = 0; i < lhs_input.size(); ++i) {
          const std::int64_t to = result_groups[g] + result_batch[b] + result_output[o];
          const std::int64_t x = lhs_groups[g] + lhs_batch[b] + lhs_input[i];
          const std::int64_t w = rhs_groups[g] + rhs_output[o] + rhs_input[i];
          for (const Meeting& m : all) {
            result[index(to + m.window)] += lhs[index(x + m.operand)] * rhs[index(w + m.place)];
          }
        }
      }
    }
  }
  return result;
}

/// Counts the products, except those with padding or with the gaps between elements.
std::int64_t convolution_flops(const Program& program, OpId op, const Mesh&) {
  const Shape& lhs = program.shape(program.op_operands(op)[0]);
  const Shape& rhs = program.shape(program.op_operands(op)[1]);
  const Shape& result = program.shape(program.result(op));
  const Convolution c = convolution_of(program.op_attrs(op), rhs);
  std::int64_t flops = 2 * lhs[static_cast<int>(c.lhs[0])] * lhs[static_cast<int>(c.lhs[1])] *
                       rhs[static_cast<int>(c.rhs[1])];
  if (!c.group.empty()) flops *= lhs[static_cast<int>(c.group[0])];
  for (std::size_t i = 0; i < c.window.size(); ++i) {
    flops *= count_elements_under(c.window[i], lhs[static_cast<int>(c.lhs[2 + i])],
                                  result[static_cast<int>(c.result[2 + i])]);
  }
  return flops;
}

constexpr Attr kConvolution[] = {list("lhs", 1, 2),    list("rhs", 1, 2),
                                 list("result", 1, 2), list("stride"),
                                 list("low"),          list("high"),
                                 list("lhs_dilation"), list("rhs_dilation"),
                                 flag("reversed"),     list("group", 0, 3).if_set()};

}  // namespace

constexpr OpRow rows::convolution{
    .doc = "Matrix products summed over a window of the spatial dims (window.hpp).",
    .operands = operands(2),
    .attrs = Attrs(kConvolution),
    .infer = convolved,
    .rule = convolution_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = convolution_cotangent,
    .evaluate = convolved_elements,
    .decompose = none,
    .cost = convolution_flops,
    .traits = Traits{.product = true, .reorder = Reorder::convolution},
};

}  // namespace weft
