#pragma once
/// ManualAxes: computes for each value of a program the mesh atoms that are manual, because the
/// value belongs to a function of shard_map. They are derived from the ops `enter`, `leave` and
/// `vary` and from collectives; a program doesn't store them.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/sharding/atom.hpp>
#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The manual atoms of a value. Along those in `manual`, each chip has a value of its own; only
/// along those in `varies` may these values differ. The other atoms of the mesh are automatic:
/// propagation may shard the value over them.
struct ManualAtoms {
  AtomMask manual = 0;
  AtomMask varies = 0;
  bool anywhere = false;  ///< depends on no input: every function and the code outside may read it

  friend bool operator==(const ManualAtoms&, const ManualAtoms&) = default;
};

class ManualAxes {
 public:
  /// Computes the atoms of all values. The atoms of a carry include those of the carry's next
  /// value.
  explicit ManualAxes(const Program& program);

  static bool has_any(const Program& program);
  /// Computes the atoms for ops that were appended to the program since the last call. Here a carry
  /// has only the atoms of its first value.
  void follow(const Program& program);
  const ManualAtoms& operator[](ValueId value) const { return values_[value]; }
  /// Returns the atoms over which propagation can't shard the value, because they are manual.
  AtomMask held(ValueId value) const { return held_[value]; }

 private:
  void add(const Program& program, OpId op);
  void hold(const Program& program);

  std::vector<ManualAtoms> values_;
  std::vector<AtomMask> held_;
  OpId done_ = 0;
};

/// Returns the atoms in the `manual` or `atoms` attribute of an op of shard_map; no atoms for other
/// ops.
AtomMask atoms_of_manual_op(const Program& program, OpId op);
/// Returns the atoms that shard the dims of an `enter` or a `leave`.
AtomMask atoms_of_dims(std::span<const std::int64_t> attrs);
/// Throws corrupt, with the atoms, if the op uses manual atoms in a wrong way. For example, all
/// operands must be manual along the same atoms, and the operand of a `leave` may vary over an atom
/// of the `leave` only if this atom shards a dim.
void check_manual(const Program& program, const ManualAxes& axes, const Mesh& mesh, OpId op);
/// Checks all ops with the function above, and checks that no output of the program is manual.
void check_manual(const Program& program, const Mesh& mesh);

}  // namespace weft
