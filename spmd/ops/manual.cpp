/// Defines the ops at the borders between a global program and its shard_map functions. In such a
/// function, values have the shape of a chip's part along some of the mesh's atoms, which are
/// called manual (manual_axes.hpp).

#include "spmd/ops/builder.hpp"
#include "spmd/ops/elements.hpp"
#include "spmd/ops/row.hpp"

namespace weft {
namespace {

using infer::reject;

std::int64_t parts_of(const OpSignature& op, std::int64_t bits) {
  return op.mesh->count(AtomList::from_bits(static_cast<std::uint64_t>(bits)));
}

/// Checks that all atoms of the dims are manual atoms. Returns the words of the dims.
Words expect_dims(const OpSignature& op) {
  const Words dims = op.attrs.subspan(1);
  infer::expect_words(op, static_cast<std::size_t>(op.operands[0].shape.size()) + 1);
  infer::expect_atoms(op, op.attrs[0]);
  const auto manual = static_cast<std::uint64_t>(op.attrs[0]);
  infer::expect_atom_lists(op, dims);
  for (const std::int64_t bits : dims) {
    const AtomMask used = AtomList::from_bits(static_cast<std::uint64_t>(bits)).mask();
    if ((used & ~AtomList::from_bits(manual).mask()) != 0) {
      reject(op, "a dim has atoms {:#x}, which aren't manual", static_cast<std::uint64_t>(bits));
    }
  }
  return dims;
}

TensorType entered(const OpSignature& op) {
  const Words dims = expect_dims(op);
  Shape shape = op.operands[0].shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    const std::int64_t parts = parts_of(op, dims[static_cast<std::size_t>(dim)]);
    if (shape[dim] % parts != 0) {
      reject(op, "size {} of dim {} isn't a multiple of its {} parts", shape[dim], dim, parts);
    }
    shape[dim] /= parts;
  }
  return {op.operands[0].dtype, shape};
}

TensorType left(const OpSignature& op) {
  const Words dims = expect_dims(op);
  Shape shape = op.operands[0].shape;
  for (int dim = 0; dim < shape.size(); ++dim) {
    shape[dim] *= parts_of(op, dims[static_cast<std::size_t>(dim)]);
  }
  return {op.operands[0].dtype, Shape(Words(shape))};
}

TensorType varied(const OpSignature& op) {
  infer::expect_atoms(op, op.attrs[0]);
  return op.operands[0];
}

/// Divides each dim of the whole tensor into two factors. The manual atoms shard the major factor,
/// and the other factor is the dim of a chip's part.
FactorRule rule_of_parts(const Program& program, OpId op) {
  const Shape& from = program.shape(program.op_operands(op)[0]);
  const Shape& to = program.shape(program.result(op));
  const bool enters = program.kind(op) == OpKind::enter;
  const Shape& whole = enters ? from : to;
  const Shape& part = enters ? to : from;
  RuleMaker rule;
  rule.add_tensor(from);
  rule.add_tensor(to);
  for (int dim = 0; dim < whole.size(); ++dim) {
    if (whole[dim] != part[dim]) {
      const int major = rule.add_factor(whole[dim] / part[dim], FactorType::need_replication);
      rule.put(enters ? 0 : 1, dim, major);
    }
    const int minor = rule.add_factor(part[dim]);
    rule.put(0, dim, minor);
    rule.put(1, dim, minor);
  }
  return rule.take();
}

ValueId entered_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  return b.leave(g, op.attrs);
}
ValueId left_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  return b.enter(g, op.attrs);
}
ValueId varied_back(Builder& b, const ForwardOp& op, std::size_t, ValueId g) {
  const auto atoms = AtomList::from_bits(static_cast<std::uint64_t>(op.attrs[0]));
  return b.all_reduce(b.mesh(), g, atoms, ReduceKind::add);
}

Elements unvaried(const Evaluation& e) { return e.operand(0); }

constexpr Attr kManual{.name = "manual", .form = Form::atoms};
constexpr Attr kBorder[] = {kManual, atom_lists("dims")};
constexpr Attr kVary[] = {atoms()};

constexpr OpRow border(std::string_view doc, Infer infer, Gradient gradient) {
  return {.doc = doc,
          .operands = operands(1),
          .attrs = Attrs(kBorder),
          .infer = infer,
          .rule = rule_of_parts,
          .spreads = Spreads::first,
          .resized = none,
          .pads = Pads::no,
          .linear = none,
          .gradient = gradient,
          .evaluate = none,
          .decompose = none,
          .cost = Cost::How::nothing,
          .traits = Traits{.moves_only = true, .picks = Picks::some}};
}

}  // namespace

constexpr OpRow rows::enter =
    border("x in the function of a shard_map: the chip's part, by the manual atoms.", entered,
           entered_back);
constexpr OpRow rows::leave =
    border("The whole tensor. On each chip, x is the part of it by the manual atoms of the dims.",
           left, left_back);
constexpr OpRow rows::vary{
    .doc =
        "x, which is equal on chips that differ in these atoms. Gradients treat the values of "
        "these chips as copies.",
    .operands = operands(1),
    .attrs = Attrs(kVary),
    .infer = varied,
    .rule = Rule("d* -> d*"),
    .spreads = Spreads::first,
    .resized = none,
    .pads = Pads::yes,
    .linear = none,
    .gradient = varied_back,
    .evaluate = unvaried,
    .decompose = none,
    .cost = Cost::How::nothing,
    .traits = Traits{.moves_only = true, .vanishes = true, .picks = Picks::all},
};

}  // namespace weft
