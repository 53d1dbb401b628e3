#include "spmd/passes/grad.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include <weft/error.hpp>

#include "spmd/ops/attribute_views.hpp"

namespace weft {
namespace {

/// "f32[2] at train.cpp:41".
std::string describe(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  const std::string type = program.type(value).to_string();
  if (op == kNoId) return type + ", an input";
  return program.loc(op).empty() ? type : type + " at " + program.loc(op);
}

/// Overwrites `copy`, whose memory is reused.
void copy_op(const Program& program, OpId op, ForwardOp& copy) {
  const auto operands = program.op_operands(op);
  const auto attrs = program.op_attrs(op);
  copy.kind = program.kind(op);
  copy.operands.assign(operands.begin(), operands.end());
  copy.attrs.assign(attrs.begin(), attrs.end());
  copy.result = program.result(op);
}

/// The backward walk over the ops that the program had when it began.
class BackwardWalk {
 public:
  BackwardWalk(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
               std::span<const RematRegion> regions, const CustomVjpRule& custom)
      : builder_(builder),
        op_count_(builder.program().num_ops()),
        wrt_(wrt),
        custom_(custom),
        regions_(regions.begin(), regions.end()),
        last_addend_(builder.program().num_values(), kNoId),
        again_(builder.program().num_values()) {
    std::iota(again_.begin(), again_.end(), ValueId{0});
    mark_active();
    if (active_[loss]) {
      if (const OpId op = builder.program().defining_op(loss); op != kNoId) {
        builder.set_loc(builder.program().op_locs[op]);
      }
      add(loss, builder.constant(1, builder.type(loss)));
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
  /// An addend of a value's cotangent. Each value has a linked list of them, and all lists are in
  /// one vector. A list's head is the addend added last, which comes from the value's first reader.
  struct Addend {
    ValueId cotangent;
    std::uint32_t before;  ///< index of the next in the list, or kNoId
  };

  /// Active values depend on a wrt through differentiable ops on floating values.
  void mark_active() {
    const Program& program = builder_.program();
    active_.assign(program.num_values(), false);
    for (const ValueId value : wrt_) active_[value] = true;
    for (OpId op = 0; op < op_count_; ++op) {
      if (reaches_wrt(op)) active_[program.result(op)] = true;
    }
  }

  /// Whether the op passes its result's cotangent on to an active operand.
  bool reaches_wrt(OpId op) const {
    const Program& program = builder_.program();
    const ValueId result = program.result(op);
    if (!has_gradient(program.kind(op))) return false;
    if (!is_floating(program.type(result).dtype)) return false;
    const auto operands = program.op_operands(op);
    return std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return active_[v]; });
  }

  void visit(OpId id) {
    if (!reaches_wrt(id)) return;
    const ValueId cotangent = sum(builder_.program().result(id));
    if (cotangent == kNoId) return;
    compute_again(id);
    copy_op(builder_.program(), id, op_);
    operands_ = op_.operands;
    // Recomputed operands, where a region has been computed again.
    for (ValueId& operand : op_.operands) operand = again_[operand];
    op_.result = again_[op_.result];
    builder_.set_loc(builder_.program().op_locs[id]);
    if (row(op_.kind).gradient->how == Gradient::How::loop) {
      const Program& program = builder_.program();
      fail(Errc::invalid_argument,
           "grad: the loss depends on the scan() at {}, through which no gradient goes yet; a C++ "
           "loop over its items has one",
           program.loc(program.defining_op(op_.operands[0])));
    }
    if (row(op_.kind).gradient->how == Gradient::How::target) return visit_custom(cotangent);
    // Last operand first, since sum() adds the addends in reverse order.
    for (std::size_t i = operands_.size(); i-- > 0;) {
      if (!active_[operands_[i]]) continue;
      add(operands_[i], operand_cotangent(i, cotangent));
    }
  }

  ValueId operand_cotangent(std::size_t index, ValueId cotangent) {
    const Gradient& gradient = *row(op_.kind).gradient;
    if (gradient.how == Gradient::How::refused) {
      fail(Errc::invalid_argument,
           "grad: {} has no gradient; differentiate the global program, before it is partitioned",
           to_string(op_.kind));
    }
    const ValueId made =
        gradient.function != nullptr ? gradient.function(builder_, op_, index, cotangent) : kNoId;
    return made != kNoId ? made : by_decomposition(index, cotangent);
  }

  /// For ops without a gradient of their own: the gradient of their decomposition.
  ValueId by_decomposition(std::size_t index, ValueId cotangent) {
    // Copies don't depend on each other: grad() finds the cotangent of this operand alone.
    std::vector<ValueId> copies;
    for (const ValueId operand : op_.operands) copies.push_back(builder_.copy(operand));
    const ValueId result = decompose(builder_, op_.kind, copies, op_.attrs);
    const ValueId weighted = builder_.binary(OpKind::multiply, result, builder_.copy(cotangent));
    const DimList all = consecutive_dims(0, builder_.type(weighted).shape.size());
    const ValueId sum = builder_.reduce(ReduceKind::add, weighted, all);
    return grad(builder_, sum, std::array{copies[index]})[0];
  }

  void visit_custom(ValueId cotangent) {
    if (!custom_) fail(Errc::invalid_argument, "grad: nobody knows the gradient of a custom_call");
    const std::vector<ValueId> cotangents = custom_(op_, cotangent);
    for (std::size_t i = operands_.size(); i-- > 0;) {
      if (!active_[operands_[i]] || cotangents[i] == kNoId) continue;
      // sum() takes the location from the op that makes the addend, so an input is copied.
      const bool is_input = builder_.program().defining_op(cotangents[i]) == kNoId;
      add(operands_[i], is_input ? builder_.copy(cotangents[i]) : cotangents[i]);
    }
  }

  /// Clones the ops of the region that contains op `id`, once. The walk reaches the last region
  /// first, and drops regions in which it has found nothing to do.
  void compute_again(OpId id) {
    while (!regions_.empty() && regions_.back().begin > id) regions_.pop_back();
    if (regions_.empty() || id >= regions_.back().end) return;
    const RematRegion region = std::move(regions_.back());
    regions_.pop_back();
    std::unordered_map<ValueId, ValueId> behind_barrier;
    for (OpId op = region.begin; op < region.end; ++op) {
      if (!is_saved(region, op)) clone(op, region, behind_barrier);
    }
  }

  bool is_saved(const RematRegion& region, OpId op) const {
    const Program& program = builder_.program();
    const OpKind kind = program.kind(op);
    return (region.save_dots && row(kind).traits->product) ||
           std::ranges::binary_search(region.saved, program.result(op));
  }

  /// Operands from outside the region, or saved ones, pass through an optimization_barrier.
  /// Otherwise canonicalize would merge the clone with the original.
  void clone(OpId op, const RematRegion& region,
             std::unordered_map<ValueId, ValueId>& behind_barrier) {
    ForwardOp original;
    copy_op(builder_.program(), op, original);
    builder_.set_loc(builder_.program().op_locs[op]);
    std::vector<ValueId> operands;
    for (const ValueId operand : original.operands) {
      const OpId from = builder_.program().defining_op(operand);
      const bool inside = from != kNoId && from >= region.begin;
      if (inside && again_[operand] != operand) {
        operands.push_back(again_[operand]);
        continue;
      }
      auto& hidden = behind_barrier.try_emplace(operand, kNoId).first->second;
      if (hidden == kNoId) hidden = builder_.optimization_barrier(operand);
      operands.push_back(hidden);
    }
    Program& program = builder_.program();
    again_[original.result] = program.add_op(original.kind, operands, original.attrs,
                                             program.type(original.result), program.op_locs[op]);
  }

  void add(ValueId value, ValueId cotangent) {
    addends_.push_back({cotangent, last_addend_[value]});
    last_addend_[value] = static_cast<std::uint32_t>(addends_.size() - 1);
  }

  /// The cotangent of a value: the sum of its addends, in op order; kNoId if it has none.
  ValueId sum(ValueId value) {
    if (last_addend_[value] == kNoId) return kNoId;
    Addend& total = addends_[last_addend_[value]];
    const Program& program = builder_.program();
    builder_.set_loc(program.op_locs[program.defining_op(total.cotangent)]);
    while (total.before != kNoId) {
      const Addend& next = addends_[total.before];
      total = {builder_.binary(OpKind::add, total.cotangent, next.cotangent), next.before};
    }
    return total.cotangent;
  }

  ValueId zeros(ValueId value) {
    builder_.set_loc("");
    return builder_.constant(0, builder_.type(value));
  }

  Builder& builder_;
  const OpId op_count_;
  std::span<const ValueId> wrt_;
  const CustomVjpRule& custom_;
  std::vector<bool> active_;          // by value
  std::vector<RematRegion> regions_;  // those that the walk hasn't reached
  std::vector<Addend> addends_;
  std::vector<std::uint32_t> last_addend_;  // by value: its list's head in addends_, or kNoId
  std::vector<ValueId> again_;              // by value: its recomputed value, or itself
  ForwardOp op_;                            // the op of visit(), with recomputed values
  std::vector<ValueId> operands_;           // of that op, not recomputed
};

}  // namespace

std::vector<ValueId> grad(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                          std::span<const RematRegion> regions, const CustomVjpRule& custom) {
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
  std::vector<ValueId> grads = BackwardWalk(builder, loss, wrt, regions, custom).run();
  builder.set_loc(caller);
  return grads;
}

}  // namespace weft
