/// Defines the ops along the last dim whose results depend on the positions of elements: sorting,
/// taking elements at given positions, running sums. Rows are never divided among chips.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using infer::reject;

// The following functions infer the type of an op's result.

void expect_last_dim(const OpSignature& op) {
  for (const TensorType& operand : op.operands) {
    if (operand.shape.size() == 0) reject(op, "{} has no last dim", operand.to_string());
  }
}

/// Checks that operand `index` is i32, and that the two operands differ at most in the last dim.
void expect_places(const OpSignature& op, std::size_t index) {
  expect_last_dim(op);
  const TensorType& places = op.operands[index];
  const TensorType& other = op.operands[1 - index];
  if (places.dtype != DType::i32) {
    reject(op, "the index is {}; it must be i32", places.to_string());
  }
  const int num_dims = places.shape.size();
  bool fits = other.shape.size() == num_dims;
  for (int dim = 0; fits && dim + 1 < num_dims; ++dim) fits = places.shape[dim] == other.shape[dim];
  if (!fits) reject(op, "all dims except the last must be equal");
}

TensorType order_of(const OpSignature& op) {
  expect_last_dim(op);
  if (op.operands.size() == 2) expect_places(op, 1);
  return {DType::i32, op.operands.back().shape};
}

TensorType taken(const OpSignature& op) {
  expect_places(op, 1);
  return {op.operands[0].dtype, op.operands[1].shape};
}

TensorType scattered_along(const OpSignature& op) {
  expect_places(op, 0);
  const auto& [dtype, updates] = op.operands[1];
  if (op.operands[0].shape != updates) reject(op, "index and updates must have one shape");
  if (dtype == DType::pred) reject(op, "pred can't be added; convert it first");
  if (op.attrs[0] < 0) reject(op, "size {}; expected 0 or more", op.attrs[0]);
  std::vector<std::int64_t> sizes(updates.begin(), updates.end());
  sizes.back() = op.attrs[0];
  return {dtype, Shape(Words(sizes))};
}

TensorType recurrent(const OpSignature& op) {
  infer::expect_equal_operands(op, 0);
  expect_last_dim(op);
  if (op.operands[0].dtype == DType::pred) reject(op, "pred has no arithmetic; convert it first");
  return op.operands[0];
}

// The following functions return the factor rules of ops.

/// Returns the rule of argsort. Dim n, a row, can't be sharded. Dim k, the list of places, can be:
/// each chip then returns only the entries of the order at its own places.
FactorRule rule_of_order(const Program& program, OpId op) {
  static constexpr RuleText kAll = own_rule("r* n -> r* n need_replication={n}");
  static constexpr RuleText kSome = own_rule("r* n, r* k -> r* k need_replication={n}");
  InplaceVector<const Shape*, RuleText::kTensorCountMax> shapes;
  for (const ValueId operand : program.op_operands(op)) shapes.push_back(&program.shape(operand));
  shapes.push_back(&program.shape(program.result(op)));
  return to_factor_rule(shapes.size() == 2 ? kAll : kSome, std::span(shapes), true);
}

// The following functions append the gradients of ops.

ValueId taken_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  WEFT_CHECK(index == 0, index);
  const Shape& shape = builder.type(op.operands[0]).shape;
  return builder.scatter_along(op.operands[1], g, shape[shape.size() - 1]);
}

ValueId scattered_along_cotangent(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  return builder.take_along(g, op.operands[0]);
}

/// Shifts x by one element along its last dim, toward the end or the beginning, and fills in a 0.
ValueId moved(Builder& builder, ValueId x, bool to_end) {
  const TensorType type = builder.type(x);
  const auto last = static_cast<std::size_t>(type.shape.size() - 1);
  if (type.shape[static_cast<int>(last)] == 0) return x;
  std::vector<std::int64_t> start(last + 1, 0);
  std::vector<std::int64_t> limit(type.shape.begin(), type.shape.end());
  std::vector<std::int64_t> low(last + 1, 0);
  std::vector<std::int64_t> high(last + 1, 0);
  const std::vector<std::int64_t> stride(last + 1, 1);
  const std::vector<std::int64_t> interior(last + 1, 0);
  (to_end ? limit[last] : start[last]) += to_end ? -1 : 1;
  (to_end ? low[last] : high[last]) = 1;
  return builder.pad(builder.slice(x, start, limit, stride), builder.constant(0, {type.dtype, {}}),
                     low, high, interior);
}

/// Computes the cotangent s of b with the recurrence s[i] = a[i + 1] s[i + 1] + g[i], which runs in
/// the direction opposite to the op's. The cotangent of a is s[i] y[i - 1].
ValueId recurrence_cotangent(Builder& builder, const ForwardOp& op, std::size_t index, ValueId g) {
  const bool reversed = op.attrs[0] != 0;
  const ValueId next = moved(builder, op.operands[0], reversed);
  const ValueId s = builder.linear_recurrence(next, g, !reversed);
  if (index == 1) return s;
  return builder.binary(OpKind::multiply, s, moved(builder, op.result, !reversed));
}

// The following functions compute the values of ops, for the reference interpreters.

std::size_t last_size(const Shape& shape) {
  return static_cast<std::size_t>(shape[shape.size() - 1]);
}

/// Returns whether a comes before b in ascending order. NaN is the largest.
bool is_less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

/// Calls body(place, row) for each element of the index: element `place` of the index refers to
/// element `row` of the other tensor, whose last dim has `size` elements. Skips indices outside the
/// row.
template <typename Body>
void for_each_place(const Elements& index, std::size_t per_row, std::size_t size, Body body) {
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= static_cast<double>(size)) continue;
    body(i, i / per_row * size + static_cast<std::size_t>(index[i]));
  }
}

/// Returns the elements that operand 1 selects, by its indices, from the rows in `rows`, of `size`
/// elements each.
Elements taken_from(const Elements& rows, std::size_t size, const Evaluation& e) {
  Elements result(e.operand(1).size(), 0.0);
  for_each_place(e.operand(1), last_size(e.shape()), size,
                 [&](std::size_t i, std::size_t at) { result[i] = rows[at]; });
  return result;
}

Elements taken_elements(const Evaluation& e) {
  return taken_from(e.operand(0), last_size(e.operand_shape(0)), e);
}

Elements order_elements(const Evaluation& e) {
  const bool descending = e.attrs()[0] != 0;
  const Elements& x = e.operand(0);
  const std::size_t size = last_size(e.operand_shape(0));
  Elements result(x.size());
  for (std::size_t first = 0; first < x.size(); first += size) {
    const auto row = result.begin() + static_cast<std::ptrdiff_t>(first);
    std::iota(row, row + static_cast<std::ptrdiff_t>(size), 0.0);
    std::stable_sort(row, row + static_cast<std::ptrdiff_t>(size), [&](double i, double k) {
      const double a = x[first + static_cast<std::size_t>(i)];
      const double b = x[first + static_cast<std::size_t>(k)];
      return descending ? is_less(b, a) : is_less(a, b);
    });
  }
  return e.operands.size() == 1 ? result : taken_from(result, size, e);
}

Elements scattered_along_elements(const Evaluation& e) {
  Elements result(static_cast<std::size_t>(e.shape().num_elements()), 0.0);
  for_each_place(e.operand(0), last_size(e.operand_shape(0)), last_size(e.shape()),
                 [&](std::size_t i, std::size_t at) { result[at] += e.operand(1)[i]; });
  return result;
}

Elements recurrence_elements(const Evaluation& e) {
  const bool reversed = e.attrs()[0] != 0;
  const std::size_t size = last_size(e.shape());
  Elements result(e.operand(1).size());
  for (std::size_t first = 0; first < result.size(); first += size) {
    double y = 0;
    for (std::size_t k = 0; k < size; ++k) {
      const std::size_t i = first + (reversed ? size - 1 - k : k);
      y = e.operand(0)[i] * y + e.operand(1)[i];
      result[i] = y;
    }
  }
  return result;
}

std::int64_t argsort_flops(const Program& program, OpId op, const Mesh&) {
  const auto operands = program.op_operands(op);
  const Shape& shape = program.shape(operands[0]);
  const auto row = static_cast<std::uint64_t>(shape[shape.size() - 1]);
  const auto comparisons = static_cast<std::int64_t>(row < 2 ? 0 : std::bit_width(row - 1));
  if (operands.size() == 1) return comparisons * shape.num_elements();
  // Only the entries at the given places are sorted. To find these, all elements are read twice.
  return comparisons * program.type(operands[1]).num_elements() + 2 * shape.num_elements();
}
std::int64_t scatter_along_flops(const Program& program, OpId op, const Mesh&) {
  return program.type(program.op_operands(op)[1]).num_elements();
}
std::int64_t recurrence_flops(const Program& program, OpId op, const Mesh&) {
  return 2 * program.type(program.op_operands(op)[0]).num_elements();
}

constexpr Attr kOrder[] = {flag("descending")};
constexpr Attr kSize[] = {integer("size")};
constexpr Attr kRecurrence[] = {flag("reversed")};

constexpr OpRow along(std::string_view doc, std::uint8_t num_operands, Attrs attrs, Infer infer,
                      Rule rule, Cost cost, Gradient gradient, Evaluate evaluate) {
  return {.doc = doc,
          .operands = operands(num_operands),
          .attrs = attrs,
          .infer = infer,
          .rule = rule,
          .spreads = Spreads::later,
          .resized = none,
          .pads = Pads::yes,
          .linear = none,
          .gradient = gradient,
          .evaluate = evaluate,
          .decompose = none,
          .cost = cost,
          .traits = Traits{}};
}

}  // namespace

constexpr OpRow rows::argsort = [] {
  OpRow row = along(
      "(x, or x and places i32): the order of the elements along the last dim, as i32. With "
      "places, it has only the entries of the order at these places, and 0 for a place outside. "
      "The sort is stable, and NaN is the largest.",
      1, kOrder, order_of, Rule(rule_of_order), argsort_flops, {}, order_elements);
  row.operands = operands(1, 2);
  return row;
}();

constexpr OpRow rows::take_along = [] {
  OpRow row =
      along("(x, index i32): x[.., index[.., k]] along the last dim. An index outside gives 0.", 2,
            {}, taken, Rule("r* n, r* k -> r* k need_replication={n}"), Cost::How::nothing,
            taken_cotangent, taken_elements);
  row.traits = Traits{.reads_part_of = 0};
  return row;
}();

constexpr OpRow rows::scatter_along = along(
    "(index i32, updates): zeros, with updates[.., k] added at index[.., k] along the last dim. "
    "Updates outside are dropped.",
    2, kSize, scattered_along, Rule("r* k, r* k -> r* n need_replication={k n}"),
    scatter_along_flops, scattered_along_cotangent, scattered_along_elements);

constexpr OpRow rows::linear_recurrence = along(
    "(a, b): y[i] = a[i] y[i - 1] + b[i] along the last dim. If reversed, it starts at the end.", 2,
    kRecurrence, recurrent, Rule("r* n, r* n -> r* n need_replication={n}"), recurrence_flops,
    recurrence_cotangent, recurrence_elements);

}  // namespace weft
