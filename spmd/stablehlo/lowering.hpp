#pragma once
/// Lowering: how one op becomes ops of StableHLO. The table has a Lowering for each op in WEFT_OPS.

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

/// The state that all ops of one text share.
struct HloContext {
  const Mesh& mesh;
  const StableHloOptions& options;
  const Program* looks_at = nullptr;  ///< the program whose ops look for anomalies; null: none
  HloWriter writer{};
  HloValue position{};  ///< the chip's, i32[]; no name: no op depends on it
  HloValue token{};     ///< of the last collective; see CollectiveForm::calls
  HloValue faults{};    ///< the faults so far; see StableHloResult; no name: no op checks
  std::vector<OpId> collectives{};

  /// Returns the entry of the chip that runs the text, by its position in the mesh, as a scalar.
  HloValue of_position(std::span<const std::int64_t> by_position);
};

/// One op that is being lowered.
struct HloOp {
  HloContext& context;
  const Program& program;
  OpId op;
  std::vector<HloValue> operands;
  HloType type;  ///< of the result

  HloWriter& write() const { return context.writer; }
  const HloValue& operand(std::size_t i) const { return operands[i]; }
  const HloType& operand_type(std::size_t i) const { return operands[i].type; }
  OpKind kind() const { return program.kind(op); }
  Words attrs() const { return program.op_attrs(op); }
  DType dtype() const { return program.type(program.result(op)).dtype; }
  DType operand_dtype(std::size_t i) const {
    return program.type(program.op_operands(op)[i]).dtype;
  }
  /// Returns PartPlace::first of an attribute word with OnChip::atoms: a number for each position.
  std::vector<std::int64_t> firsts(std::size_t word) const;
  /// Returns whether all chips have the same part, which begins at 0.
  bool is_whole(std::size_t word) const;
  /// Returns zeros of the result's type.
  HloValue zeros() const { return write().splat(type, 0); }
};

/// Appends the ops and returns the result.
using Lowering = HloValue (*)(const HloOp& op);

/// Each op has a Lowering. The file of the op's family defines it. An op without a Lowering causes
/// a link error.
namespace lowerings {
#define WEFT_LOWERING(name, number) extern const Lowering name;
WEFT_OPS(WEFT_LOWERING)
#undef WEFT_LOWERING
}  // namespace lowerings

/// Returns the name of a reduction's op for elements of a dtype: "add", "maximum", "or", ...
std::string_view combiner_of(ReduceKind kind, DType dtype);

/// Lowers the ops of a program, and ends with its outputs.
class ProgramLowering {
 public:
  /// `values` has the program's inputs; the ops add their results.
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
  /// Returns the token and the faults, if ops in the text use them. A region that may change them
  /// returns them too. set_shared() puts them back, from the end of `values`.
  HloWriter::Values shared() const;
  void set_shared(const HloWriter::Values& values);

  HloContext& context_;
  const Program& program_;
  const Loops loops_;
  std::vector<HloValue> values_;
};

/// Makes (op, what) the program's fault where the scalar `is_found` holds, unless an earlier op has
/// found one. `what` is i32[].
void add_fault(const HloOp& op, const HloValue& is_found, const HloValue& what);
/// Looks for NaN and infinity in an op's result, and in its operands that no op computed.
void look_for_anomaly(const HloOp& op, const HloValue& result);

}  // namespace weft
