// Lowers composites by lowering their primitives, and lowers check_index.

#include <fmt/format.h>

#include "spmd/ops/builder.hpp"
#include "spmd/program/index_check.hpp"
#include "spmd/stablehlo/lowering.hpp"

namespace weft {
namespace {

/// The primitives of a composite, as a program whose inputs are the composite's operands.
struct Primitives {
  Program program;
  std::vector<HloValue> inputs;
  ValueId result = kNoId;
};

/// Decomposes the op. If the op rounds only its result, half operands become f32 first.
Primitives primitives_of(const HloOp& op) {
  const bool rounds_once = row(op.kind()).traits->rounds_once;
  Primitives made;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    TensorType type = op.program.type(op.program.op_operands(op.op)[i]);
    HloValue operand = op.operand(i);
    if (rounds_once && is_half(type.dtype)) {
      type.dtype = DType::f32;
      operand = op.write().convert(operand, "f32");
    }
    operands.push_back(made.program.add_input(type, InputKind::data, "", {}));
    made.inputs.push_back(operand);
  }
  Builder builder(made.program);
  made.result = decompose(builder, op.kind(), operands, op.attrs());
  return made;
}

HloValue lowered(const HloOp& op, const Primitives& primitives) {
  ProgramLowering lowering(op.context, primitives.program, primitives.inputs);
  lowering.run();
  return op.write().convert(lowering[primitives.result], op.type.element);
}

HloValue lower_composite(const HloOp& op) { return lowered(op, primitives_of(op)); }

/// Lowers attention. The iota that numbers the queries gets the op's atoms, so that the queries in
/// a chip's part have their numbers in the whole tensor.
HloValue lower_attention(const HloOp& op) {
  Primitives primitives = primitives_of(op);
  Program& program = primitives.program;
  constexpr std::int64_t kQueries = 2;
  for (OpId primitive = 0; primitive < program.num_ops(); ++primitive) {
    if (program.kind(primitive) != OpKind::iota) continue;
    std::int64_t* const words = program.attrs.data() + program.attr_begin[primitive];
    if (words[0] == kQueries) words[1] = op.attrs()[2];
  }
  return lowered(op, primitives);
}

/// Lowers check_index. The first refused index becomes the program's fault, unless an earlier op
/// has found a fault.
HloValue lower_check_index(const HloOp& op) {
  const HloValue& index = op.operand(0);
  const std::int64_t count = index.type.num_elements();
  if (count == 0) return index;
  HloWriter& w = op.write();
  const IndexCheck check(op.program, op.op, op.program.op_operands(op.op)[0]);
  const auto number = [&](std::int64_t value) {
    return w.splat({"i32", {count}}, static_cast<double>(value));
  };
  const HloValue flat = w.reshape(index, {count});
  HloValue is_refused = w.binary(
      "or", {w.compare("LT", {flat, number(0)}), w.compare("GE", {flat, number(check.limit)})});
  if (check.ignored != 0) {
    is_refused = w.binary("and", {is_refused, w.compare("NE", {flat, number(check.ignored)})});
  }
  const HloValue places = w.select({is_refused, w.iota(flat.type, 0), number(count)});
  const HloDims all{0};
  const HloValue first = w.reduce("minimum", places, static_cast<double>(count), all);
  const HloValue found = w.reshape(
      w.op("dynamic_slice", {flat, first}, {"i32", {1}}, "slice_sizes = array<i64: 1>"), {});
  const HloValue is_found =
      w.compare("LT", {first, w.splat(first.type, static_cast<double>(count))});
  add_fault(op, is_found, found);
  return index;
}

}  // namespace

constexpr Lowering lowerings::softmax = lower_composite;
constexpr Lowering lowerings::softmax_grad = lower_composite;
constexpr Lowering lowerings::log_softmax = lower_composite;
constexpr Lowering lowerings::log_softmax_grad = lower_composite;
constexpr Lowering lowerings::normalize = lower_composite;
constexpr Lowering lowerings::normalize_grad = lower_composite;
constexpr Lowering lowerings::cross_entropy = lower_composite;
constexpr Lowering lowerings::cross_entropy_grad = lower_composite;
constexpr Lowering lowerings::attention = lower_attention;
constexpr Lowering lowerings::attention_grad = lower_composite;
constexpr Lowering lowerings::check_index = lower_check_index;

}  // namespace weft
