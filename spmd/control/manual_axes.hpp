#pragma once
/// What a program's values are to the functions of shard_map. It follows from the ops `enter`,
/// `leave` and `vary`, and from collectives; a program doesn't store it.

#include <cstdint>
#include <span>
#include <vector>

#include <weft/atom.hpp>
#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Atoms along which a value is a chip's own, and those of them in which chips may have different
/// ones. The rest of the mesh's atoms are automatic: propagation may shard the value over them.
struct ManualAtoms {
  AtomMask manual = 0;
  AtomMask varies = 0;
  bool anywhere = false;  ///< made of no input: it may be read in every function and outside

  friend bool operator==(const ManualAtoms&, const ManualAtoms&) = default;
};

class ManualAxes {
 public:
  /// Of all values; the next value of a loop's carry counts for the carry.
  explicit ManualAxes(const Program& program);

  static bool has_any(const Program& program);
  /// Goes on with what has been appended to the program since. Carries are as they begin.
  void follow(const Program& program);
  const ManualAtoms& operator[](ValueId value) const { return values_[value]; }
  /// Atoms that can't shard the value outside of functions of shard_map.
  AtomMask held(ValueId value) const { return held_[value]; }

 private:
  void add(const Program& program, OpId op);
  void hold(const Program& program);

  std::vector<ManualAtoms> values_;
  std::vector<AtomMask> held_;
  OpId done_ = 0;
};

/// The atoms that the op's `manual` or `atoms` attribute has, if it is one of a shard_map.
AtomMask atoms_of_manual_op(const Program& program, OpId op);
/// Atoms of the dims of an `enter` or `leave`.
AtomMask atoms_of_dims(std::span<const std::int64_t> attrs);
/// Throws corrupt, naming the atoms, unless the op's operands are manual along the same atoms, and
/// a `leave` has values that don't vary over manual atoms that no dim has.
void check_manual(const Program& program, const ManualAxes& axes, const Mesh& mesh, OpId op);
/// The same for all ops, and outputs aren't manual.
void check_manual(const Program& program, const Mesh& mesh);

}  // namespace weft
