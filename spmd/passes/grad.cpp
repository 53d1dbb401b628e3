#include <weft/spmd/passes/grad.hpp>

#include <algorithm>
#include <string>

#include <weft/spmd/error.hpp>
#include <weft/spmd/passes/vjp.hpp>

namespace weft {
namespace {

/// "f32[2] at train.cpp:41".
std::string describe(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  const std::string type = program.type(value).to_string();
  if (op == kNoId) return type + ", an input";
  return program.loc(op).empty() ? type : type + " at " + program.loc(op);
}

/// The backward walk over the ops that the program had when it began.
class BackwardWalk {
 public:
  BackwardWalk(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
               std::span<const ValueId> stop)
      : builder_(builder),
        op_count_(builder.program().num_ops()),
        wrt_(wrt),
        addends_(builder.program().num_values()) {
    mark_active(stop);
    if (active_[loss]) {
      if (const OpId op = builder.program().defining_op(loss); op != kNoId) {
        builder.set_loc(builder.program().op_locs[op]);
      }
      addends_[loss].push_back(builder.constant(1, builder.type(loss)));
    }
  }

  std::vector<ValueId> run() {
    for (OpId op = op_count_; op-- > 0;) visit(op);
    std::vector<ValueId> grads;
    for (const ValueId value : wrt_) {
      const ValueId cotangent = sum(value);
      grads.push_back(cotangent != kNoId ? cotangent : zeros(value));
    }
    return grads;
  }

 private:
  /// Active values depend on a wrt through differentiable ops on floating values.
  void mark_active(std::span<const ValueId> stop) {
    const Program& program = builder_.program();
    stopped_.assign(program.num_values(), false);
    for (const ValueId value : stop) stopped_[value] = true;
    active_.assign(program.num_values(), false);
    for (const ValueId value : wrt_) active_[value] = true;
    for (OpId op = 0; op < op_count_; ++op) {
      if (reaches_wrt(op)) active_[program.result(op)] = true;
    }
  }

  /// Whether a cotangent of the op's result has anywhere to go.
  bool reaches_wrt(OpId op) const {
    const Program& program = builder_.program();
    const ValueId result = program.result(op);
    if (stopped_[result] || !has_vjp(program.kind(op))) return false;
    if (!is_floating(program.type(result).dtype)) return false;
    const auto operands = program.op_operands(op);
    return std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return active_[v]; });
  }

  void visit(OpId id) {
    if (!reaches_wrt(id)) return;
    const ForwardOp op = forward_op(builder_.program(), id);
    const ValueId cotangent = sum(op.result);
    if (cotangent == kNoId) return;
    builder_.set_loc(builder_.program().op_locs[id]);
    // Last operand first: the walk goes backward, and sum() turns the order round.
    for (std::size_t i = op.operands.size(); i-- > 0;) {
      if (!active_[op.operands[i]]) continue;
      addends_[op.operands[i]].push_back(operand_cotangent(builder_, op, i, cotangent));
    }
  }

  /// The cotangent of a value: its addends, in op order; kNoId if it has none.
  ValueId sum(ValueId value) {
    std::vector<ValueId>& addends = addends_[value];
    if (addends.empty()) return kNoId;
    const Program& program = builder_.program();
    builder_.set_loc(program.op_locs[program.defining_op(addends.back())]);
    while (addends.size() > 1) {
      const ValueId first = addends.back();
      addends.pop_back();
      addends.back() = builder_.binary(OpKind::add, first, addends.back());
    }
    return addends.front();
  }

  ValueId zeros(ValueId value) {
    builder_.set_loc("");
    return builder_.constant(0, builder_.type(value));
  }

  Builder& builder_;
  const OpId op_count_;
  std::span<const ValueId> wrt_;
  std::vector<bool> stopped_;                  // by value
  std::vector<bool> active_;                   // by value
  std::vector<std::vector<ValueId>> addends_;  // cotangents by value, latest op first
};

}  // namespace

std::vector<ValueId> grad(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                          std::span<const ValueId> stop) {
  const Program& program = builder.program();
  const TensorType type = program.type(loss);
  if (!is_floating(type.dtype) || type.shape.size() != 0) {
    fail(Errc::invalid_argument,
         "grad: the loss must be a floating scalar, but is {}; reduce it with sum or mean",
         describe(program, loss));
  }
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!is_floating(program.type(wrt[i]).dtype)) {
      fail(Errc::invalid_argument, "grad: wrt[{}] is {}; only floating values have a gradient", i,
           describe(program, wrt[i]));
    }
  }
  const LocId caller = builder.loc();
  std::vector<ValueId> grads = BackwardWalk(builder, loss, wrt, stop).run();
  builder.set_loc(caller);
  return grads;
}

}  // namespace weft
