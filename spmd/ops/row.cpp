#include <array>
#include <cmath>

#include <weft/tensor/error.hpp>

#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
constexpr std::array<const OpRow*, kOpNumberMax> kRows = [] {
  std::array<const OpRow*, kOpNumberMax> table{};
#define WEFT_ROW(name, number)                                   \
  if (table[number] != nullptr) throw "two ops have one number"; \
  table[number] = &rows::name;
  WEFT_OPS(WEFT_ROW)
#undef WEFT_ROW
  return table;
}();

namespace {

/// Returns the shapes of the operands, then of the result.
InplaceVector<const Shape*, RuleText::kTensorCountMax + 1> shapes_of(const Program& program,
                                                                     OpId op) {
  InplaceVector<const Shape*, RuleText::kTensorCountMax + 1> shapes;
  for (const ValueId operand : program.op_operands(op)) shapes.push_back(&program.shape(operand));
  shapes.push_back(&program.shape(program.result(op)));
  return shapes;
}

/// Writes the sizes and atoms of the part into the words.
void put_part(const Attrs& attrs, std::span<std::int64_t> words, const PartShapes& shapes) {
  if (!attrs.is_placed) return;
  const auto parts = split_words(attrs, words);
  WEFT_CHECK(parts.has_value(), words.size());
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    const Attr& attr = attrs[i];
    const bool has_layout = shapes.result_layout != nullptr;
    if (attr.on_chip == OnChip::same || (attr.on_chip == OnChip::atoms && !has_layout)) continue;
    const auto operand = static_cast<std::size_t>(attr.of.tensor);
    const bool of_result = attr.of.tensor == AttrDim::kResult;
    const auto first = static_cast<std::size_t>((*parts)[i].data() - words.data());
    for (std::size_t k = 0; k < (*parts)[i].size(); ++k) {
      const auto named = static_cast<std::size_t>(attr.of.dim);
      const auto dim = attr.of.dim_in_word                ? static_cast<std::size_t>(words[named])
                       : attr.of.dim == AttrDim::kEachDim ? k
                                                          : named;
      if (attr.on_chip == OnChip::size) {
        const Shape& shape = of_result ? shapes.result : *shapes.operands[operand];
        words[first + k] = shape[static_cast<int>(dim)];
      } else {
        const Sharding& layout =
            of_result ? *shapes.result_layout : shapes.operand_layouts[operand];
        words[first + k] = static_cast<std::int64_t>(layout.dims[dim].bits());
      }
    }
  }
}

}  // namespace

FactorRule factor_rule(const Program& program, OpId op) {
  const OpRow& row = weft::row(program.kind(op));
  const bool adds = program.type(program.result(op)).dtype != DType::pred;
  FactorRule rule = row.rule->function != nullptr
                        ? row.rule->function(program, op)
                        : to_factor_rule(row.rule->text, shapes_of(program, op), adds);
  rule.elementwise = *row.spreads == Spreads::first;
  return rule;
}

FactorRule identity_rule(const Shape& shape) {
  static constexpr RuleText kText = own_rule("d* -> d*");
  FactorRule rule = to_factor_rule(kText, std::array{&shape, &shape}, true);
  rule.elementwise = true;
  return rule;
}

std::vector<std::int64_t> attrs_of_part(const Program& program, OpId op, const PartShapes& shapes) {
  const Words given = program.op_attrs(op);
  std::vector<std::int64_t> words(given.begin(), given.end());
  const OpRow& row = weft::row(program.kind(op));
  put_part(*row.attrs, words, shapes);
  if (*row.resized != nullptr) {
    (*row.resized)(words, program.shape(program.op_operands(op)[0]), *shapes.operands[0]);
  }
  return words;
}

std::vector<PartPlace> place_on_chip(const Program& program, OpId op, const Mesh* mesh,
                                     int position) {
  const Attrs& attrs = *row(program.kind(op)).attrs;
  const auto parts = split_words(attrs, program.op_attrs(op));
  WEFT_CHECK(parts.has_value(), op);
  std::vector<PartPlace> places;
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    if (attrs[i].on_chip != OnChip::atoms) continue;
    for (std::size_t k = 0; k < (*parts)[i].size(); ++k) {
      PartPlace& place = places.emplace_back();
      const auto atoms = AtomList::from_bits(static_cast<std::uint64_t>((*parts)[i][k]));
      if (mesh == nullptr || atoms.empty()) continue;
      const AttrDim& of = attrs[i].of;
      const ValueId value = of.tensor == AttrDim::kResult
                                ? program.result(op)
                                : program.op_operands(op)[static_cast<std::size_t>(of.tensor)];
      const int dim = of.dim_in_word
                          ? static_cast<int>(program.op_attrs(op)[static_cast<std::size_t>(of.dim)])
                      : of.dim == AttrDim::kEachDim ? static_cast<int>(k)
                                                    : of.dim;
      place.first = mesh->index_in(position, atoms) * program.shape(value)[dim];
      place.parts = mesh->count(atoms);
    }
  }
  return places;
}

namespace {

std::int64_t flops_of_primitives(const Program& program, OpId op, const Mesh& mesh) {
  Program primitives;
  std::vector<ValueId> operands;
  for (const ValueId operand : program.op_operands(op)) {
    operands.push_back(primitives.add_input(program.type(operand), InputKind::data, "", {}));
  }
  Builder builder(primitives);
  decompose(builder, program.kind(op), operands, program.op_attrs(op));
  std::int64_t flops = 0;
  for (OpId i = 0; i < primitives.num_ops(); ++i) flops += flops_of(primitives, i, mesh);
  return flops;
}

}  // namespace

std::int64_t flops_of(const Program& program, OpId op, const Mesh& mesh) {
  const Cost& cost = *row(program.kind(op)).cost;
  switch (cost.how) {
    case Cost::How::nothing: break;
    case Cost::How::elements: return program.type(program.result(op)).num_elements();
    case Cost::How::function: return cost.function(program, op, mesh);
    case Cost::How::decomposition: return flops_of_primitives(program, op, mesh);
  }
  return 0;
}

AtomMask meeting_atoms(const Program& program, OpId op) {
  const Traits& traits = *row(program.kind(op)).traits;
  if (!traits.meets || traits.permutes) return 0;
  return AtomList::from_bits(static_cast<std::uint64_t>(program.op_attrs(op)[0])).mask();
}

ValueId picked_from(const Program& program, ValueId value, Picks least) {
  for (OpId op = program.defining_op(value); op != kNoId; op = program.defining_op(value)) {
    const Traits& traits = *row(program.kind(op)).traits;
    if (traits.picks < least) break;
    value = program.op_operands(op)[traits.border ? 1 : 0];
  }
  return value;
}

Elements evaluate(const Evaluation& evaluation) {
  const Evaluate& how = *row(evaluation.program.kind(evaluation.op)).evaluate;
  const DType dtype = evaluation.type().dtype;
  const auto stored = [&](Elements elements) {
    for (double& element : elements) element = wrapped(dtype, element);
    return elements;
  };
  if (how.whole != nullptr) return stored(how.whole(evaluation));
  WEFT_CHECK(how.unary != nullptr || how.binary != nullptr, evaluation.op);
  const bool is_float = is_floating(dtype);
  Elements result;
  result.reserve(evaluation.operand(0).size());
  for (std::size_t i = 0; i < evaluation.operand(0).size(); ++i) {
    const double x = evaluation.operand(0)[i];
    const double y = how.unary != nullptr ? how.unary(x) : how.binary(x, evaluation.operand(1)[i]);
    result.push_back(is_float ? y : std::trunc(y));
  }
  return stored(std::move(result));
}

ValueId decompose(Builder& builder, OpKind kind, std::span<const ValueId> operands, Words attrs) {
  const Decompose how = *row(kind).decompose;
  WEFT_CHECK(how != nullptr, to_string(kind));
  return how(builder, operands, attrs);
}

}  // namespace weft
