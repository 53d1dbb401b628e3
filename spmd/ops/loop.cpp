/// Defines the ops of loops. A loop is the range of ops from `loop` to the last op of its border
/// (control/loops.hpp). Ops in the loop may read values from outside that aren't operands of the
/// loop.

#include <limits>

#include "spmd/control/loops.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using infer::reject;

constexpr Attr kLoop[] = {integer("length").if_set(), flag("reversed").if_set()};
constexpr Attr kStack[] = {integer("length")};

TensorType loop_type(const OpSignature& op) {
  if (op.attrs[0] < 0 || op.attrs[0] > std::numeric_limits<std::int32_t>::max()) {
    reject(op, "length is {}; expected 1 or more within i32, or 0 for a loop with a test",
           op.attrs[0]);
  }
  if (op.attrs[0] == 0 && op.attrs[1] != 0) reject(op, "a loop without length can't be reversed");
  return {DType::i32, {}};
}

void expect_loop(const OpSignature& op) {
  if (op.operands[0] != TensorType{DType::i32, {}}) {
    reject(op, "operand 0 is {}; it must be a loop, i32[]", op.operands[0].to_string());
  }
}

TensorType carry_type(const OpSignature& op) {
  expect_loop(op);
  return op.operands[1];
}

TensorType item_type(const OpSignature& op) {
  expect_loop(op);
  const TensorType& items = op.operands[1];
  if (items.shape.size() == 0) reject(op, "a scalar has no items; expected 1 dim or more");
  return {items.dtype, Shape(std::span<const std::int64_t>(items.shape).subspan(1))};
}

TensorType stack_type(const OpSignature& op) {
  expect_loop(op);
  const TensorType& part = op.operands[1];
  if (part.shape.size() == kDimCountMax) {
    reject(op, "a stack has one more dim, and at most {} dims are possible", kDimCountMax);
  }
  std::vector<std::int64_t> dims{op.attrs[0]};
  dims.insert(dims.end(), part.shape.begin(), part.shape.end());
  if (op.attrs[0] < 1) reject(op, "length is {}; expected 1 or more", op.attrs[0]);
  return {part.dtype, Shape(dims)};
}

TensorType test_type(const OpSignature& op) {
  expect_loop(op);
  infer::expect_predicate(op, 1);
  return op.operands[1];
}

TensorType next_type(const OpSignature& op) {
  expect_loop(op);
  infer::expect_equal_operands(op, 1);
  return op.operands[1];
}

Elements first_elements(const Evaluation& e) { return e.operand(1); }
Elements next_elements(const Evaluation& e) { return e.operand(2); }

Elements item_elements(const Evaluation& e) {
  const auto size = static_cast<std::ptrdiff_t>(e.type().num_elements());
  const auto first = e.operand(1).begin() + static_cast<std::ptrdiff_t>(e.operand(0)[0]) * size;
  return {first, first + size};
}

constexpr OpRow border(std::string_view doc, OperandCount count, Infer infer, Rule rule,
                       Evaluate evaluate, bool unique) {
  return {.doc = doc,
          .operands = count,
          .attrs = Attrs(),
          .infer = infer,
          .rule = rule,
          .spreads = Spreads::first,
          .resized = none,
          .pads = Pads::yes,
          .linear = none,
          .gradient = Gradient(Gradient::How::loop),
          .evaluate = evaluate,
          .decompose = none,
          .cost = Cost::How::nothing,
          .traits = Traits{.unique = unique, .border = true}};
}

constexpr OpRow test_row() {
  OpRow row = border("Operand 1. If it is false, the loop ends here.", operands(2), test_type,
                     Rule(", ->"), first_elements, true);
  row.gradient = none;
  return row;
}

constexpr OpRow stack_row() {
  OpRow row = border("The values of all iterations, along a new dim 0.", operands(2), stack_type,
                     Rule(", d* -> n d*"), Evaluate(), false);
  row.attrs = Attrs(kStack);
  row.linear = Linearity{Linearity::In::one};
  return row;
}

}  // namespace

constexpr OpRow rows::loop{
    .doc =
        "The number of the iteration. It counts up from 0 or, if reversed, down from length - 1.",
    .operands = operands(0),
    .attrs = Attrs(kLoop),
    .infer = loop_type,
    .rule = Rule("->"),
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::no,
    .linear = none,
    .gradient = none,
    .evaluate = none,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.unique = true},
};
constexpr OpRow rows::carry = border(
    "Operand 1 in the first iteration, and then the value that `next` set in the previous "
    "iteration.",
    operands(2), carry_type, Rule(", d* -> d*"), first_elements, true);
constexpr OpRow rows::item = [] {
  OpRow row = border("The part of operand 1 at the iteration's number in dim 0.", operands(2),
                     item_type, Rule(", n d* -> d*"), item_elements, false);
  row.traits = Traits{.border = true, .picks = Picks::some, .reads_part_of = 1};
  return row;
}();
constexpr OpRow rows::test = test_row();
constexpr OpRow rows::stack = stack_row();
constexpr OpRow rows::next = border(
    "Sets the carry, operand 1, to operand 2 for the next iteration. The result is the last such "
    "value.",
    operands(3), next_type, Rule(", d*, d* -> d*"), next_elements, true);

ValueId Builder::loop(std::int64_t length, bool reversed) {
  return emit(OpKind::loop, {}, std::array{length, std::int64_t{reversed}});
}

ValueId Builder::border(OpKind kind, std::initializer_list<ValueId> operands) {
  const OpId begin = program_->defining_op(*operands.begin());
  const OpKind expected = is_cond_border(kind) ? OpKind::cond : OpKind::loop;
  WEFT_CHECK(begin != kNoId && program_->kind(begin) == expected, to_string(kind));
  if (kind != OpKind::stack) return emit(kind, operands, {});
  return emit(kind, operands, std::array{length_of_loop(*program_, begin)});
}

}  // namespace weft
