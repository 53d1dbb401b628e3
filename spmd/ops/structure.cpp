/// Defines ops that change no element, and custom_call.

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/custom_function.hpp"
#include "spmd/program/element.hpp"
#include "spmd/rules/custom_rule.hpp"

namespace weft {
namespace {

TensorType custom_type(const OpSignature& op) { return op.result; }

FactorRule custom_rule(const Program& program, OpId op) {
  const RuleText text = parse_custom_rule(program.custom_target(op).rule);
  std::vector<const Shape*> tensors;
  for (const ValueId operand : program.op_operands(op)) tensors.push_back(&program.shape(operand));
  tensors.push_back(&program.shape(program.result(op)));
  return to_factor_rule(text, tensors, true);
}

ValueId constrained_back(Builder& builder, const ForwardOp& op, std::size_t, ValueId g) {
  const Sharding sharding = builder.program().constraints[static_cast<std::size_t>(op.attrs[0])];
  return builder.sharding_constraint(g, sharding);
}

ValueId passed_back(Builder&, const ForwardOp&, std::size_t, ValueId g) { return g; }

Elements unchanged(const Evaluation& e) { return e.operand(0); }

/// Runs the op's own kernel on elements that are converted to the program's dtypes.
Elements custom_elements(const Evaluation& e) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<const std::byte*> places;
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    const TensorType& type = e.operand_type(i);
    std::byte* element = bytes.emplace_back(static_cast<std::size_t>(type.bytes())).data();
    places.push_back(element);
    for (const double value : e.operand(i)) {
      store_element(type.dtype, value, element);
      element += byte_size(type.dtype);
    }
  }
  const TensorType& type = e.type();
  std::vector<std::byte> made(static_cast<std::size_t>(type.bytes()));
  BoundCustomCall(e.program, e.op).run(places, made.data());
  Elements result(static_cast<std::size_t>(type.num_elements()));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::size_t offset = i * static_cast<std::size_t>(byte_size(type.dtype));
    result[i] = load_element(type.dtype, made.data() + offset);
  }
  return result;
}

/// Returns a rule in which dims of the other operands can't be sharded. This restricts nothing,
/// because the op is removed before shardings are chosen.
FactorRule gradient_rule(const Program& program, OpId op) {
  RuleMaker rule;
  const auto operands = program.op_operands(op);
  for (const ValueId operand : operands) rule.add_tensor(program.shape(operand));
  const Shape& y = program.shape(program.result(op));
  rule.add_tensor(y);
  for (int dim = 0; dim < y.size(); ++dim) {
    const int factor = rule.add_factor(y[dim], FactorType::pass_through);
    rule.put(0, dim, factor);
    rule.put(static_cast<int>(operands.size()), dim, factor);
  }
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const Shape& x = program.shape(operands[i]);
    for (int dim = 0; dim < x.size(); ++dim) {
      rule.put(static_cast<int>(i), dim, rule.add_factor(x[dim], FactorType::need_replication));
    }
  }
  return rule.take();
}

constexpr Attr kFunction[] = {integer("function")};
constexpr Attr kConstraint[] = {{.name = "sharding", .form = Form::constraint}};
constexpr Attr kTarget[] = {{.name = "target", .form = Form::target}};

constexpr OpRow identity(std::string_view doc, Attrs attrs, Gradient gradient, Traits traits) {
  return {.doc = doc,
          .operands = operands(1),
          .attrs = attrs,
          .infer = infer::same,
          .rule = Rule("d* -> d*"),
          .spreads = Spreads::first,
          .resized = none,
          .pads = Pads::yes,
          .linear = none,
          .gradient = gradient,
          .evaluate = unchanged,
          .decompose = none,
          .cost = Cost::How::nothing,
          .traits = traits};
}

}  // namespace

constexpr OpRow rows::sharding_constraint =
    identity("x with the layout of the constraint.", kConstraint, constrained_back,
             Traits{.picks = Picks::all});
constexpr OpRow rows::copy = identity(
    "x in a buffer of its own.", {}, passed_back,
    Traits{.moves_only = true, .near = true, .picks = Picks::all, .reorder = Reorder::nothing});
constexpr OpRow rows::optimization_barrier = identity(
    "x. The op is never merged with an equal op, so ops that read its result aren't merged either.",
    {}, passed_back, Traits{.moves_only = true, .unique = true, .picks = Picks::all});

constexpr OpRow rows::stop_gradient =
    identity("x. Gradients treat it as a constant.", {}, {},
             Traits{.moves_only = true, .vanishes = true, .picks = Picks::all});

constexpr OpRow rows::custom_gradient = [] {
  OpRow row = identity(
      "(y, x, ..): y. A function that the loop keeps makes the gradients of the operands x.",
      kFunction, Gradient(Gradient::How::target), Traits{.moves_only = true, .vanishes = true});
  row.operands = operands(2, 1 + kCustomOperandCountMax);
  row.rule = Rule(gradient_rule);
  return row;
}();

/// The target's rule says which dims of the operands and the result correspond.
constexpr OpRow rows::custom_call{
    .doc = "A function that the program defines.",
    .operands = operands(1, kCustomOperandCountMax),
    .attrs = Attrs(kTarget),
    .infer = custom_type,
    .rule = custom_rule,
    .spreads = Spreads::later,
    .resized = none,
    .pads = Pads::no,
    .linear = none,
    .gradient = Gradient(Gradient::How::target),
    .evaluate = custom_elements,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{},
};

}  // namespace weft
