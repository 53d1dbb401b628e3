#pragma once
/// OpRow: everything about one op except its kernels, which belong to the device. Passes read rows
/// instead of naming ops, unless a pass is about a particular op. docs/adding_an_op.md says how to
/// add an op.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/tensor/error.hpp>

#include "spmd/ops/infer.hpp"
#include "spmd/ops/row_fields.hpp"

namespace weft {

struct OpRow {
  Said<std::string_view> doc;
  Said<OperandCount> operands;
  Said<Attrs> attrs;
  Said<Infer> infer;
  Said<Rule> rule;
  Said<Spreads> spreads;
  Said<Resize> resized;
  Said<Pads> pads;
  Said<Linearity> linear;
  Said<Gradient> gradient;
  Said<Evaluate> evaluate;
  Said<Decompose> decompose;
  Said<Cost> cost;
  Said<Traits> traits;
};

/// Each op of op_list.hpp has a row, which the file of the op's family defines.
namespace rows {
#define WEFT_ROW(name, number) extern const OpRow name;
WEFT_OPS(WEFT_ROW)
#undef WEFT_ROW
}  // namespace rows

/// The row of each op number; null if no op has the number.
extern const std::array<const OpRow*, kOpNumberMax> kRows;

/// Returns the row; null if no op has this number.
inline const OpRow* find_row(OpKind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return number < kRows.size() ? kRows[number] : nullptr;
}
/// Returns the row of `kind`, which must be an op.
inline const OpRow& row(OpKind kind) {
  const OpRow* found = find_row(kind);
  WEFT_CHECK(found != nullptr, static_cast<int>(kind));
  return *found;
}

inline bool is_elementwise(OpKind kind) { return row(kind).traits->elementwise; }
/// Returns whether the op exchanges data with other chips. all_slice doesn't.
inline bool is_collective(OpKind kind) { return row(kind).traits->meets; }
/// Returns the atoms of the op's groups: chips that differ only in these atoms meet in the op.
/// Returns 0 if no chips meet, or only some may, as in a permute.
AtomMask meeting_atoms(const Program& program, OpId op);
inline bool moves_only(OpKind kind) { return row(kind).traits->moves_only; }
/// Returns whether the op is a composite, which has a kernel of its own but can be expressed in
/// primitives.
inline bool is_composite(OpKind kind) { return *row(kind).decompose != nullptr; }
/// Returns false if the op passes no cotangent to its operands.
inline bool has_gradient(OpKind kind) { return row(kind).gradient->how != Gradient::How::constant; }

/// Follows `value` back through ops that only pick elements, in any shape, order and dtype, and
/// returns the value from which the elements come. With Picks::all, doesn't follow ops that omit
/// some elements.
ValueId picked_from(const Program& program, ValueId value, Picks least = Picks::some);

/// Returns whether the op's result is a sum of bf16 or f16 whose parts on the chips are f32 until
/// the chips have added them up.
inline bool has_wide_parts(const Program& program, OpId op) {
  return row(program.kind(op)).traits->rounds_once &&
         is_half(program.type(program.result(op)).dtype);
}

/// Returns the table to which the op's attributes refer: elements, constraint or target. For an op
/// without such attributes, returns integer.
inline Form table_of(OpKind kind) {
  const Attrs& attrs = *row(kind).attrs;
  const Form form = attrs.empty() ? Form::integer : attrs.front().form;
  const bool is_table = form == Form::elements || form == Form::constraint || form == Form::target;
  return is_table ? form : Form::integer;
}
/// Returns the rule of an op in a global program. Collectives of chips' programs have none.
FactorRule factor_rule(const Program& program, OpId op);
/// Returns the rule of an elementwise op with one operand of this shape.
FactorRule identity_rule(const Shape& shape);
/// The shapes and layouts of an op's tensors on a chip. For padding, these are the shapes of the
/// whole padded tensors.
struct PartShapes {
  std::span<const Shape* const> operands;
  const Shape& result;
  std::span<const Sharding> operand_layouts{};
  const Sharding* result_layout = nullptr;  ///< null for padding, in which atoms stay unchanged
};
/// Returns the attributes that the op has for parts of these shapes.
std::vector<std::int64_t> attrs_of_part(const Program& program, OpId op, const PartShapes& shapes);
/// Returns the positions of the chip's part, one for each attribute word with OnChip::atoms. If
/// `mesh` is null, the part is the whole tensor.
std::vector<PartPlace> place_on_chip(const Program& program, OpId op, const Mesh* mesh,
                                     int position);
/// Returns the op's flops on a chip of this mesh (cost.hpp).
std::int64_t flops_of(const Program& program, OpId op, const Mesh& mesh);
/// Returns the op's value on one chip. Can't be used for collectives, which need other chips'
/// parts.
Elements evaluate(const Evaluation& evaluation);
/// Appends the primitives of an op, which must be a composite.
ValueId decompose(Builder& builder, OpKind kind, std::span<const ValueId> operands, Words attrs);

}  // namespace weft
