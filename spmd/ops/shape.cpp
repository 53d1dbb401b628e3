/// Defines the ops that give the operand's elements another shape or order.

#include <algorithm>
#include <numeric>

#include "spmd/ops/attribute_views.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using namespace infer;

// The following functions infer the type of an op's result.

TensorType reshaped(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  if (op.result.dtype != x.dtype || op.result.num_elements() != x.num_elements()) {
    reject(op, "result {} must have the operand's dtype and its {} elements", op.result.to_string(),
           x.num_elements());
  }
  return op.result;
}

TensorType transposed(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  if (static_cast<int>(op.attrs.size()) != x.shape.size()) {
    reject(op, "perm [{}] must name each of the {} dims once", fmt::join(op.attrs, ","),
           x.shape.size());
  }
  expect_distinct(op, op.attrs, x.shape);
  Shape shape = x.shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    shape[dim] = x.shape[static_cast<int>(op.attrs[static_cast<std::size_t>(dim)])];
  }
  return {x.dtype, shape};
}

TensorType broadcasted(const OpSignature& op) {
  const TensorType& x = op.operands[0];
  if (op.result.dtype != x.dtype) {
    reject(op, "result {} has another dtype", op.result.to_string());
  }
  if (static_cast<int>(op.attrs.size()) != x.shape.size()) {
    reject(op, "dims [{}] must give a result dim for each of the {} operand dims",
           fmt::join(op.attrs, ","), x.shape.size());
  }
  expect_ascending(op, op.attrs, op.result.shape);
  for (int dim = 0; dim < x.shape.size(); ++dim) {
    const auto to = static_cast<int>(op.attrs[static_cast<std::size_t>(dim)]);
    if (x.shape[dim] != 1 && x.shape[dim] != op.result.shape[to]) {
      reject(op, "operand dim {} of size {} can't become dim {} of {}; sizes must agree or be 1",
             dim, x.shape[dim], to, op.result.to_string());
    }
  }
  return op.result;
}

TensorType reversed(const OpSignature& op) {
  expect_ascending(op, op.attrs, op.operands[0].shape);
  return op.operands[0];
}

// The following functions return the factor rules of ops.

/// Walks over a shape from the major dim on, and takes each dim in pieces, from its major side.
struct DimWalk {
  std::size_t tensor;
  const Shape& shape;
  int dim = 0;
  std::int64_t left = 1;  // the rest of dim - 1, which is the current dim

  /// Takes further dims while `left` is 1. Returns false if `left` is still 1 after the last dim.
  bool advance() {
    while (left == 1 && dim < shape.size()) left = shape[dim++];
    return left != 1;
  }
  void take(RuleMaker& rule, int factor, std::int64_t size) {
    rule.put(tensor, dim - 1, factor);
    left /= size;
  }
  /// Takes the rest of the dim as a factor that the other shape doesn't have.
  std::int64_t take_alone(RuleMaker& rule) {
    const std::int64_t size = left;
    take(rule, rule.add_factor(size, FactorType::need_replication), size);
    return size;
  }
};

/// Walks over both shapes with running products. While the products are equal, both shapes get a
/// common factor: the gcd of the rests of their current dims. If the gcd is 1, each shape gets
/// factors of its own until the products are equal again.
FactorRule reshape_rule(const Program& program, OpId op) {
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const Shape& to = program.shape(program.result(op));
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  DimWalk in{0, from};
  DimWalk out{1, to};
  if (from.num_elements() == 0) {
    for (DimWalk* walk : {&in, &out}) {
      while (walk->dim < walk->shape.size()) {
        walk->left = walk->shape[walk->dim++];
        rule.put(walk->tensor, walk->dim - 1,
                 rule.add_factor(walk->left, FactorType::need_replication));
      }
    }
    return rule.take();
  }
  while (in.advance() && out.advance()) {
    if (const std::int64_t shared = std::gcd(in.left, out.left); shared > 1) {
      const int factor = rule.add_factor(shared);
      in.take(rule, factor, shared);
      out.take(rule, factor, shared);
      continue;
    }
    std::int64_t in_product = in.take_alone(rule);
    std::int64_t out_product = out.take_alone(rule);
    while (in_product != out_product) {
      const bool in_is_behind = in_product < out_product;
      DimWalk& behind = in_is_behind ? in : out;
      WEFT_CHECK(behind.advance(), from.to_string(), to.to_string());
      (in_is_behind ? in_product : out_product) *= behind.take_alone(rule);
    }
  }
  return rule.take();
}

FactorRule transpose_rule(const Program& program, OpId op) {
  const Words perm = program.op_attrs(op);
  const Shape& to = program.shape(program.result(op));
  RuleMaker rule;
  rule.add_tensor(program.shape(program.op_operands(op)[0]));
  rule.add_tensor(to);
  for (std::size_t dim = 0; dim < perm.size(); ++dim) {
    const int factor = rule.add_factor(to[static_cast<int>(dim)]);
    rule.put(0, perm[dim], factor);
    rule.put(1, static_cast<std::int64_t>(dim), factor);
  }
  return rule.take();
}

FactorRule broadcast_rule(const Program& program, OpId op) {
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const Shape& to = program.shape(program.result(op));
  const Words dims = program.op_attrs(op);
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  for (int dim = 0; dim < to.size(); ++dim) rule.put(1, dim, rule.add_factor(to[dim]));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int dim = static_cast<int>(dims[i]);
    const std::int64_t size = from[static_cast<int>(i)];
    const bool expands = size != to[dim];
    rule.put(0, static_cast<std::int64_t>(i), expands ? rule.add_factor(size) : dim);
  }
  return rule.take();
}

/// Returns a rule in which dims that are reversed can't be sharded.
FactorRule reverse_rule(const Program& program, OpId op) {
  const Words dims = program.op_attrs(op);
  const Shape& shape = program.shape(program.result(op));
  RuleMaker rule;
  for (int tensor = 0; tensor < 2; ++tensor) rule.add_tensor(shape);
  for (int dim = 0; dim < shape.size(); ++dim) {
    const bool is_turned = std::ranges::count(dims, dim) > 0;
    const auto type = is_turned ? FactorType::need_replication : FactorType::pass_through;
    const int factor = rule.add_factor(shape[dim], type);
    rule.put(0, dim, factor);
    rule.put(1, dim, is_turned ? rule.add_factor(shape[dim], type) : factor);
  }
  return rule.take();
}

// The following functions append the gradients of ops.

ValueId reshaped_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.reshape(g, Shape(builder.type(op.operands[0]).shape));
}

ValueId transposed_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.transpose(g, inverse_permutation(op.attrs));
}

ValueId summed_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  const Shape from = builder.type(op.operands[0]).shape;
  const Shape to = builder.type(g).shape;
  DimList summed = free_dims(to.size(), op.attrs, {});
  for (int i = 0; i < from.size(); ++i) {
    const std::int64_t dim = op.attrs[static_cast<std::size_t>(i)];
    if (from[i] != to[static_cast<int>(dim)]) summed.push_back(dim);
  }
  const ValueId sum = summed.empty() ? g : builder.reduce(ReduceKind::add, g, summed);
  return builder.type(sum).shape == from ? sum : builder.reshape(sum, from);
}

ValueId reversed_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.reverse(g, op.attrs);
}

// The following functions compute the values of ops, for the reference interpreters.

Elements reshaped_elements(const Evaluation& e) { return e.operand(0); }

Elements transposed_elements(const Evaluation& e) {
  const std::vector<std::int64_t> from = row_major_strides(e.operand_shape(0));
  std::vector<std::int64_t> strides;
  for (const std::int64_t dim : e.attrs()) strides.push_back(from[static_cast<std::size_t>(dim)]);
  return take(e.operand(0), offsets(e.shape(), strides));
}

Elements broadcasted_elements(const Evaluation& e) {
  const Shape& from = e.operand_shape(0);
  const std::vector<std::int64_t> from_strides = row_major_strides(from);
  std::vector<std::int64_t> strides(static_cast<std::size_t>(e.shape().size()), 0);
  for (std::size_t i = 0; i < e.attrs().size(); ++i) {
    const bool expands = from[static_cast<int>(i)] == 1;
    strides[static_cast<std::size_t>(e.attrs()[i])] = expands ? 0 : from_strides[i];
  }
  return take(e.operand(0), offsets(e.shape(), strides));
}

Elements reversed_elements(const Evaluation& e) {
  std::vector<std::int64_t> strides = row_major_strides(e.shape());
  std::int64_t last = 0;
  for (const std::int64_t dim : e.attrs()) {
    std::int64_t& stride = strides[static_cast<std::size_t>(dim)];
    last += (e.shape()[static_cast<int>(dim)] - 1) * stride;
    stride = -stride;
  }
  std::vector<std::int64_t> where = offsets(e.shape(), strides);
  for (std::int64_t& place : where) place += last;
  return take(e.operand(0), where);
}

constexpr Attr kPerm[] = {list("perm")};
constexpr Attr kDims[] = {list("dims")};

/// Makes the row of an op that moves all elements of one operand.
constexpr OpRow moved(std::string_view doc, Attrs attrs, Infer infer, Rule rule, Spreads spreads,
                      Gradient gradient, Evaluate evaluate) {
  return {.doc = doc,
          .operands = operands(1),
          .attrs = attrs,
          .infer = infer,
          .rule = rule,
          .spreads = spreads,
          .resized = none,
          .pads = Pads::yes,
          .linear = Linearity{.in = Linearity::In::first},
          .gradient = gradient,
          .evaluate = evaluate,
          .decompose = none,
          .cost = Cost::How::nothing,
          .traits = Traits{.picks = Picks::all}};
}

constexpr OpRow near(OpRow row, Reorder reorder) {
  row.traits = Traits{.near = true, .picks = Picks::all, .reorder = reorder};
  return row;
}

}  // namespace

constexpr OpRow rows::reshape =
    near(moved("The elements in another shape.", {}, reshaped, reshape_rule, Spreads::first,
               reshaped_back, reshaped_elements),
         Reorder::refused);
constexpr OpRow rows::transpose =
    moved("Result dim i is operand dim perm[i].", kPerm, transposed, transpose_rule, Spreads::first,
          transposed_back, transposed_elements);
constexpr OpRow rows::broadcast_in_dim = near(
    moved("Operand dim i becomes result dim dims[i]; dims is ascending. A dim of size 1 expands.",
          kDims, broadcasted, broadcast_rule, Spreads::broadcast, summed_back,
          broadcasted_elements),
    Reorder::broadcast);
constexpr OpRow rows::reverse =
    moved("x with the order of its elements reversed along dims, which is ascending.", kDims,
          reversed, reverse_rule, Spreads::later, reversed_back, reversed_elements);

}  // namespace weft
