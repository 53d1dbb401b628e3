#pragma once
/// OpRow: all facts about one op but its kernels, which are the device's. A pass reads the row and
/// names no op, except ops that are its subject.
///
/// To add an op: docs/adding_an_op.md.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weft/error.hpp>

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
  Said<Traits> traits;
};

/// By number; null where there is no op.
extern const std::array<const OpRow*, kOpNumberMax> kRows;

/// Null for a number that is no op's.
inline const OpRow* find_row(OpKind kind) noexcept {
  const auto number = static_cast<std::size_t>(kind);
  return number < kRows.size() ? kRows[number] : nullptr;
}
/// The kind is an op's.
inline const OpRow& row(OpKind kind) {
  const OpRow* found = find_row(kind);
  WEFT_CHECK(found != nullptr, static_cast<int>(kind));
  return *found;
}

inline bool is_elementwise(OpKind kind) { return row(kind).traits->elementwise; }
/// Whether the op exchanges data with other chips. all_slice doesn't.
inline bool is_collective(OpKind kind) { return row(kind).traits->meets; }
inline bool moves_only(OpKind kind) { return row(kind).traits->moves_only; }
/// Whether the op is a composite: expressible in primitives, but with a kernel of its own.
inline bool is_composite(OpKind kind) { return *row(kind).decompose != nullptr; }
/// False where the result carries no cotangent to its operands.
inline bool has_gradient(OpKind kind) { return row(kind).gradient->how != Gradient::How::constant; }

/// Of a table that words of the op index: elements, constraint or target; else integer.
Form table_of(OpKind kind);
/// The rule of an op of a global program. Collectives have none.
FactorRule factor_rule(const Program& program, OpId op);
/// Of an elementwise op with one operand, of this shape.
FactorRule identity_rule(const Shape& shape);
/// The shapes of a chip's part (or, in padding, of the padded whole), and how it lies.
struct PartShapes {
  std::span<const Shape* const> operands;
  const Shape& result;
  std::span<const Sharding> operand_layouts{};
  const Sharding* result_layout = nullptr;  ///< null in padding: atoms stay as they are
};
/// The attributes of an op's part: `whole` is the shape of its first operand.
std::vector<std::int64_t> attrs_of_part(const Program& program, OpId op, const PartShapes& shapes);
/// Where the chip's part lies, by attribute word with OnChip::atoms; null: the whole, on one chip.
std::vector<PartPlace> place_on_chip(const Program& program, OpId op, const Mesh* mesh,
                                     int position);
/// The op's value on one chip; collectives have none there.
Elements evaluate(const Evaluation& evaluation);
/// Appends the op as primitives; it is a composite.
ValueId decompose(Builder& builder, OpKind kind, std::span<const ValueId> operands, Words attrs);

}  // namespace weft
