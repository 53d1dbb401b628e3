/// Defines the ops of branches. A cond has two branches, and runs one of them. The first branch is
/// the range of ops from `cond` to `otherwise`, and the second the range from `otherwise` to the
/// first `merge` (control/loops.hpp). Ops in a branch may read values from outside that aren't
/// operands of the cond.

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

TensorType predicate_type(const OpSignature& op) {
  infer::expect_predicate(op, 0);
  return op.operands[0];
}

TensorType merge_type(const OpSignature& op) {
  infer::expect_predicate(op, 0);
  infer::expect_equal_operands(op, 1);
  return op.operands[1];
}

Elements same_predicate(const Evaluation& e) { return e.operand(0); }
Elements other_predicate(const Evaluation& e) { return {e.operand(0)[0] != 0 ? 0.0 : 1.0}; }

constexpr OpRow branch(std::string_view doc, Evaluate evaluate) {
  return {.doc = doc,
          .operands = operands(1),
          .attrs = Attrs(),
          .infer = predicate_type,
          .rule = Rule("d* -> d*"),
          .spreads = Spreads::later,
          .resized = none,
          .pads = Pads::no,
          .linear = none,
          .gradient = none,
          .evaluate = evaluate,
          .decompose = none,
          .cost = Cost::How::nothing,
          .traits = Traits{.unique = true}};
}

}  // namespace

constexpr OpRow rows::cond =
    branch("Begins the first of two branches, which runs if the operand is true.", same_predicate);
constexpr OpRow rows::otherwise = branch(
    "Begins the second branch of the cond, which runs if the first one doesn't. The result is the "
    "negation of the cond.",
    other_predicate);
constexpr OpRow rows::merge{
    .doc = "Operand 1 or 2: the value from the branch that ran.",
    .operands = operands(3),
    .attrs = Attrs(),
    .infer = merge_type,
    .rule = Rule(", d*, d* -> d*"),
    .spreads = Spreads::first,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = Gradient(Gradient::How::loop),
    .evaluate = none,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{},
};

ValueId Builder::cond(ValueId predicate) { return emit(OpKind::cond, {predicate}, {}); }

}  // namespace weft
