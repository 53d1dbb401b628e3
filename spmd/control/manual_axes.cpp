#include "spmd/control/manual_axes.hpp"

#include <algorithm>

#include "spmd/program/op_kind.hpp"

namespace weft {
namespace {

AtomMask atoms_at(std::span<const std::int64_t> attrs, std::size_t i) {
  return AtomList::from_bits(static_cast<std::uint64_t>(attrs[i])).mask();
}

ManualAtoms joined(const ManualAtoms& a, const ManualAtoms& b) {
  return {.manual = static_cast<AtomMask>(a.manual | b.manual),
          .varies = static_cast<AtomMask>(a.varies | b.varies),
          .anywhere = a.anywhere && b.anywhere};
}

AtomMask without(AtomMask atoms, AtomMask gone) { return static_cast<AtomMask>(atoms & ~gone); }

/// Returns the names of the axes of these atoms, such as `{"data"}`.
std::string names(const Mesh& mesh, AtomMask atoms) {
  Sharding sharding;
  sharding.dims[0] = mesh.list(atoms);
  const std::string text = sharding.to_string(mesh, 1);
  return text.substr(1, text.size() - 2);
}

}  // namespace

bool ManualAxes::has_any(const Program& program) {
  return std::ranges::find(program.op_kinds, OpKind::enter) != program.op_kinds.end();
}

ManualAxes::ManualAxes(const Program& program) {
  std::vector<ManualAtoms> before;
  do {
    before = values_;
    done_ = 0;
    follow(program);
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (program.kind(op) != OpKind::next) continue;
      const auto operands = program.op_operands(op);
      values_[operands[1]] = joined(values_[operands[1]], values_[operands[2]]);
    }
  } while (values_ != before);
  hold(program);
}

void ManualAxes::follow(const Program& program) {
  for (ValueId value = static_cast<ValueId>(values_.size()); value < program.num_values();
       ++value) {
    values_.push_back({.anywhere = program.defining_op(value) != kNoId});
  }
  for (; done_ < program.num_ops(); ++done_) add(program, done_);
}

void ManualAxes::add(const Program& program, OpId op) {
  const OpKind kind = program.kind(op);
  ManualAtoms atoms{.anywhere = true};
  for (const ValueId operand : program.op_operands(op)) atoms = joined(atoms, values_[operand]);
  const AtomMask own = atoms_of_manual_op(program, op);
  if (kind == OpKind::enter) {
    atoms.manual = static_cast<AtomMask>(atoms.manual | own);
    atoms.anywhere = false;
    atoms.varies = static_cast<AtomMask>(atoms.varies | atoms_of_dims(program.op_attrs(op)));
  } else if (kind == OpKind::leave) {
    atoms = {.manual = without(atoms.manual, own), .varies = without(atoms.varies, own)};
  } else if (kind == OpKind::all_reduce) {
    atoms.varies = without(atoms.varies, own);
  } else if (kind == OpKind::cond || kind == OpKind::otherwise) {
    atoms = {.anywhere = true};  // the merges may take values with any manual atoms
  } else if (kind == OpKind::carry) {
    // A carry isn't `anywhere`, because its next value may depend on inputs.
    atoms = joined(atoms, values_[program.result(op)]);
    atoms.anywhere = false;
  } else {
    atoms.varies = static_cast<AtomMask>(atoms.varies | own);
  }
  values_[program.result(op)] = atoms;
}

/// Computes held_. A value that depends on no input holds the atoms of the ops that read it.
void ManualAxes::hold(const Program& program) {
  for (const ManualAtoms& atoms : values_) held_.push_back(atoms.manual);
  for (OpId op = program.num_ops(); op-- > 0;) {
    AtomMask mask = atoms_of_manual_op(program, op);
    for (const ValueId operand : program.op_operands(op)) {
      mask = static_cast<AtomMask>(mask | values_[operand].manual);
    }
    if (values_[program.result(op)].anywhere) {
      mask = static_cast<AtomMask>(mask | held_[program.result(op)]);
    }
    for (const ValueId operand : program.op_operands(op)) {
      if (values_[operand].anywhere) held_[operand] = static_cast<AtomMask>(held_[operand] | mask);
    }
  }
}

AtomMask atoms_of_manual_op(const Program& program, OpId op) {
  switch (program.kind(op)) {
    case OpKind::enter:
    case OpKind::leave:
    case OpKind::vary:
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::ppermute: return atoms_at(program.op_attrs(op), 0);
    default: return 0;
  }
}

AtomMask atoms_of_dims(std::span<const std::int64_t> attrs) {
  AtomMask used = 0;
  for (std::size_t i = 1; i < attrs.size(); ++i) {
    used = static_cast<AtomMask>(used | atoms_at(attrs, i));
  }
  return used;
}

void check_manual(const Program& program, const ManualAxes& axes, const Mesh& mesh, OpId op) {
  const OpKind kind = program.kind(op);
  const auto operands = program.op_operands(op);
  ManualAtoms all{.anywhere = true};
  for (const ValueId operand : operands) {
    const ManualAtoms& own = axes[operand];
    if (own.anywhere) continue;
    if (!all.anywhere && own.manual != all.manual) {
      fail(Errc::corrupt, "one operand is manual over {}, but another operand over {}",
           names(mesh, all.manual), names(mesh, own.manual));
    }
    all = joined(all, own);
  }
  const AtomMask own = atoms_of_manual_op(program, op);
  if (kind == OpKind::enter) {
    if ((all.manual & own) == 0) return;
    fail(Errc::corrupt, "the operand is already manual over {}",
         names(mesh, static_cast<AtomMask>(all.manual & own)));
  }
  if (without(own, all.manual) != 0) {
    fail(Errc::corrupt, "the operand isn't manual over {}", names(mesh, without(own, all.manual)));
  }
  if (kind == OpKind::leave) {
    const AtomMask lost =
        static_cast<AtomMask>(without(all.varies, atoms_of_dims(program.op_attrs(op))) & own);
    if (lost != 0) fail(Errc::corrupt, "the operand varies over {}", names(mesh, lost));
  }
  if ((kind == OpKind::cond || kind == OpKind::test) && all.varies != 0) {
    fail(Errc::corrupt, "the predicate varies over {}", names(mesh, all.varies));
  }
  if (kind == OpKind::sharding_constraint) {
    const auto index = static_cast<std::size_t>(program.op_attrs(op)[0]);
    const auto taken = static_cast<AtomMask>(program.constraints[index].used() & all.manual);
    if (taken != 0) {
      fail(Errc::corrupt,
           "the value is manual over {}, so these axes can't also shard it in the shard_map",
           names(mesh, taken));
    }
  }
}

void check_manual(const Program& program, const Mesh& mesh) {
  const ManualAxes axes(program);
  for (OpId op = 0; op < program.num_ops(); ++op) {
    try {
      check_manual(program, axes, mesh, op);
    } catch (const Error& error) {
      const std::string& loc = program.loc(op);
      fail(Errc::corrupt, "Program: op {} ({}{}{}): {}", op, to_string(program.kind(op)),
           loc.empty() ? "" : " at ", loc, error.what());
    }
  }
  for (const ProgramOutput& output : program.outputs) {
    if (axes[output.value].manual == 0) continue;
    fail(Errc::corrupt, "Program: output \"{}\" is manual over {}", output.name,
         names(mesh, axes[output.value].manual));
  }
}

}  // namespace weft
