#include "spmd/ops/emitter.hpp"

#include <algorithm>
#include <array>

#include "spmd/ops/row.hpp"

namespace weft {
namespace {

AtomMask merged(AtomMask a, AtomMask b) { return static_cast<AtomMask>(a | b); }

}  // namespace

void Emitter::set_loc(std::string_view file_line) { loc_ = program_->intern_loc(file_line); }

ValueId Emitter::emit(OpKind kind, std::span<const ValueId> operands,
                      std::span<const std::int64_t> attrs, const TensorType& result,
                      const Mesh* mesh) {
  if (kind == OpKind::enter && !manual_) manual_.emplace(*program_);
  std::vector<ValueId> agreed;
  if (manual_) operands = agreed = agree(kind, operands, attrs);
  operand_types_.clear();
  for (const ValueId operand : operands) {
    WEFT_CHECK(operand < program_->num_values(), operand, program_->num_values());
    operand_types_.push_back(type(operand));
  }
  try {
    const TensorType inferred = infer_type({kind, operand_types_, attrs, result, mesh});
    const ValueId value = program_->add_op(kind, operands, attrs, inferred, loc_);
    if (manual_) check_manual(*program_, follow(), *mesh_, program_->num_ops() - 1);
    return value;
  } catch (const Error& error) {
    std::string_view message = error.what();
    const std::string_view op = to_string(kind);
    if (error.code() == Errc::corrupt) {  // thrown by check_manual()
      fail(Errc::invalid_argument, "{}: {}{}", caller_.empty() ? op : caller_, message,
           loc_ == 0 ? "" : fmt::format(" (at {})", program_->locs[loc_]));
    }
    if (!caller_.empty() && message.starts_with(op)) message.remove_prefix(op.size());
    const bool is_renamed = message.size() < std::string_view(error.what()).size();
    fail(error.code(), "{}{}{}", is_renamed ? caller_ : "", message,
         loc_ == 0 ? "" : fmt::format(" (at {})", program_->locs[loc_]));
  }
}

const ManualAxes& Emitter::follow() {
  manual_->follow(*program_);
  return *manual_;
}

ManualAtoms Emitter::manual(ValueId value) { return manual_ ? follow()[value] : ManualAtoms{}; }

ValueId Emitter::like(ValueId x, const ManualAtoms& model) {
  const auto missing = static_cast<AtomMask>(model.manual & ~manual(x).manual);
  if (missing != 0) {
    std::vector<std::int64_t> attrs(static_cast<std::size_t>(type(x).shape.size()) + 1, 0);
    attrs[0] = static_cast<std::int64_t>(mesh_->list(missing).bits());
    x = emit(OpKind::enter, {x}, attrs, {}, mesh_);
  }
  const auto alike = static_cast<AtomMask>(model.varies & ~manual(x).varies);
  // If the value isn't floating, `vary` is omitted, because it only matters for gradients.
  return alike != 0 && is_floating(type(x).dtype) ? vary(x, alike) : x;
}

ValueId Emitter::vary(ValueId x, AtomMask atoms) {
  const std::array word{static_cast<std::int64_t>(mesh_->list(atoms).bits())};
  return emit(OpKind::vary, {x}, word, {}, mesh_);
}

/// Returns the operands, made manual and varying along the same atoms as each other. An operand
/// that depends on no input stays unchanged, except in collectives and `leave`.
std::vector<ValueId> Emitter::agree(OpKind kind, std::span<const ValueId> operands,
                                    std::span<const std::int64_t> attrs) {
  std::vector<ValueId> agreed(operands.begin(), operands.end());
  if (kind == OpKind::enter || kind == OpKind::vary) return agreed;
  if (kind == OpKind::next) {
    agreed[2] = like(agreed[2], manual(agreed[1]));
    return agreed;
  }
  ManualAtoms wanted;
  for (const ValueId operand : agreed) {
    wanted.manual = merged(wanted.manual, manual(operand).manual);
    wanted.varies = merged(wanted.varies, manual(operand).varies);
  }
  const bool is_of_atoms = kind == OpKind::leave || is_collective(kind);
  if (is_of_atoms) {
    const AtomMask own = AtomList::from_bits(static_cast<std::uint64_t>(attrs[0])).mask();
    wanted.manual = merged(wanted.manual, own);
    wanted.varies = merged(wanted.varies, kind == OpKind::leave ? atoms_of_dims(attrs) : own);
  }
  for (ValueId& operand : agreed) {
    if (is_of_atoms || !manual(operand).anywhere) operand = like(operand, wanted);
  }
  return agreed;
}

}  // namespace weft
