#pragma once
/// Emitter: appends an op to a Program, with shape inference and checks.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "spmd/control/manual_axes.hpp"
#include "spmd/program/program.hpp"

namespace weft {

class Emitter {
 public:
  /// `mesh` is needed for functions of shard_map; it is null if the program has none.
  explicit Emitter(Program& program, const Mesh* mesh = nullptr)
      : program_(&program), mesh_(mesh) {}

  Program& program() { return *program_; }
  const Mesh& mesh() const { return *mesh_; }
  const TensorType& type(ValueId value) const { return program_->type(value); }
  /// Sets the location "file:line" of the ops that follow; "" for none.
  void set_loc(std::string_view file_line);
  LocId loc() const { return loc_; }
  void set_loc(LocId loc) { loc_ = loc; }
  /// Sets the public function that makes the ops that follow: errors have its name instead of the
  /// op's. "" for none.
  void set_caller(std::string_view function) { caller_ = function; }

  /// Returns the atoms along which the value is manual and those along which it varies, in
  /// functions of shard_map.
  ManualAtoms manual(ValueId value);
  /// Returns x, made manual and varying also along the atoms of `model`. Every op does this to
  /// operands whose atoms differ.
  ValueId like(ValueId x, const ManualAtoms& model);
  ValueId vary(ValueId x, AtomMask atoms);

 protected:
  /// Infers the result's type, and appends the op. OpSignature (infer.hpp) describes `result` and
  /// `mesh`.
  ValueId emit(OpKind kind, std::span<const ValueId> operands, std::span<const std::int64_t> attrs,
               const TensorType& result = {}, const Mesh* mesh = nullptr);
  ValueId emit(OpKind kind, std::initializer_list<ValueId> operands,
               std::span<const std::int64_t> attrs, const TensorType& result = {},
               const Mesh* mesh = nullptr) {
    return emit(kind, std::span(operands.begin(), operands.size()), attrs, result, mesh);
  }

  Program* program_;

 private:
  /// Returns the operands after they have been made manual along the atoms that the op needs.
  std::vector<ValueId> agree(OpKind kind, std::span<const ValueId> operands,
                             std::span<const std::int64_t> attrs);
  /// Returns the manual axes of all ops so far.
  const ManualAxes& follow();

  const Mesh* mesh_;
  std::optional<ManualAxes> manual_;  // present after the first `enter`
  LocId loc_ = 0;
  std::string_view caller_{};
  std::vector<TensorType> operand_types_;  // of the op that is being made
};

}  // namespace weft
