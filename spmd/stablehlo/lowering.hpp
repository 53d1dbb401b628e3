#pragma once
/// Lowering: a function that writes one op as ops of StableHLO. Each op in WEFT_OPS has one.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spmd/control/loops.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/op_list.hpp"
#include "spmd/stablehlo/hlo_writer.hpp"
#include "spmd/stablehlo/stablehlo.hpp"

namespace weft {

/// The state that is shared by all ops of one text.
struct HloContext {
  const Mesh& mesh;
  const StableHloOptions& options;
  const Program* looks_at = nullptr;  ///< the program to check for anomalies; null: none
  HloWriter writer{};
  HloValue position{};  ///< the chip's position, i32[]; unnamed if no op depends on it
  HloValue token{};     ///< the token of the last collective (CollectiveForm::calls)
  HloValue faults{};    ///< the first fault so far (StableHloResult); unnamed if no op checks
  std::vector<OpId> collectives{};

  /// Returns the entry of `by_position` for the chip that runs the text, as a scalar.
  HloValue of_position(std::span<const std::int64_t> by_position);
};

/// An op that is being lowered.
struct HloOp {
  HloContext& context;
  const Program& program;
  OpId op;
  std::vector<HloValue> operands;
  HloType type;  ///< the type of the result

  HloWriter& write() const { return context.writer; }
  const HloValue& operand(std::size_t i) const { return operands[i]; }
  const HloType& operand_type(std::size_t i) const { return operands[i].type; }
  OpKind kind() const { return program.kind(op); }
  Words attrs() const { return program.op_attrs(op); }
  DType dtype() const { return program.type(program.result(op)).dtype; }
  DType operand_dtype(std::size_t i) const {
    return program.type(program.op_operands(op)[i]).dtype;
  }
  /// Returns PartPlace::first for each position in the mesh. `word` is the number of an attribute
  /// word with OnChip::atoms.
  std::vector<std::int64_t> firsts(std::size_t word) const;
  /// Returns whether the atoms in the word cut nothing, so that every chip's part begins at 0.
  bool is_whole(std::size_t word) const;
  /// Returns zeros of the result's type.
  HloValue zeros() const { return write().splat(type, 0); }
};

/// Appends the ops that compute `op`, and returns the result.
using Lowering = HloValue (*)(const HloOp& op);

/// The Lowerings of all ops. The file of the op's family defines each of them, and a missing one
/// causes a link error.
namespace lowerings {
#define WEFT_LOWERING(name, number) extern const Lowering name;
WEFT_OPS(WEFT_LOWERING)
#undef WEFT_LOWERING
}  // namespace lowerings

/// Returns the name of the op that reduces elements of a dtype: "add", "maximum", "or", ...
std::string_view combiner_of(ReduceKind kind, DType dtype);

/// Lowers the ops of a program. Afterwards, operator[] returns the outputs.
class ProgramLowering {
 public:
  /// `values` has the program's inputs at their ids. run() adds the results of the ops.
  ProgramLowering(HloContext& context, const Program& program, std::vector<HloValue> values);

  void run() { lower(0, program_.num_ops()); }
  const HloValue& operator[](ValueId value) const { return values_[value]; }

 private:
  void lower(OpId begin, OpId end);
  void lower_op(OpId op);
  void lower_loop(const LoopRange& range);
  void lower_branches(const LoopRange& first, const LoopRange& second);
  HloWriter::Values body_of_loop(const LoopRange& range, const HloWriter::Values& state);
  std::vector<OpId> stacks_of(const LoopRange& range) const;
  HloWriter::Values rest_of_loop(const LoopRange& range, OpId begin, const HloValue& number,
                                 const HloWriter::Values& state);
  /// Returns the token and the faults, as far as the text uses them. A region that may change them
  /// also returns them, and set_shared() then takes them from the end of `values`.
  HloWriter::Values shared() const;
  void set_shared(const HloWriter::Values& values);

  HloContext& context_;
  const Program& program_;
  const Loops loops_;
  std::vector<HloValue> values_;
};

/// Appends ops that record (op, what) as the program's fault, if the scalar `is_found` is true and
/// no earlier op has found a fault. `what` is i32[].
void add_fault(const HloOp& op, const HloValue& is_found, const HloValue& what);
/// Appends checks for a NaN or an infinity in an op's result, and for a NaN in operands that no op
/// computed.
void look_for_anomaly(const HloOp& op, const HloValue& result);

}  // namespace weft
