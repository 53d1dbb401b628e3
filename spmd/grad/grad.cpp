#include "spmd/grad/grad.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/grad/backward_walk.hpp"
#include "spmd/ops/attribute_views.hpp"

namespace weft {
namespace {

/// Returns a text such as "f32[2] at train.cpp:41".
std::string describe(const Program& program, ValueId value) {
  const OpId op = program.defining_op(value);
  const std::string type = program.type(value).to_string();
  if (op == kNoId) return type + ", an input";
  return program.loc(op).empty() ? type : type + " at " + program.loc(op);
}

}  // namespace

void copy_op(const Program& program, OpId op, ForwardOp& copy) {
  const auto operands = program.op_operands(op);
  const auto attrs = program.op_attrs(op);
  copy.kind = program.kind(op);
  copy.operands.assign(operands.begin(), operands.end());
  copy.attrs.assign(attrs.begin(), attrs.end());
  copy.result = program.result(op);
}

BackwardWalk::BackwardWalk(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                           std::span<const RematRegion> regions, const CustomVjpRule& custom)
    : builder_(builder),
      op_count_(builder.program().num_ops()),
      loops_(builder.program()),
      wrt_(wrt),
      custom_(custom),
      all_regions_(regions),
      regions_(regions.begin(), regions.end()),
      last_addend_(builder.program().num_values(), kNoId),
      again_(builder.program().num_values()) {
  std::iota(again_.begin(), again_.end(), ValueId{0});
  active_.assign(builder.program().num_values(), false);
  for (const ValueId value : wrt_) active_[value] = true;
  mark_active(0, op_count_);
  if (active_[loss]) {
    if (const OpId op = builder.program().defining_op(loss); op != kNoId) {
      builder.set_loc(builder.program().op_locs[op]);
    }
    add(loss, builder.constant(1, builder.type(loss)));
  }
}

std::vector<ValueId> BackwardWalk::run() {
  visit_range(0, op_count_);
  std::vector<ValueId> grads;
  for (const ValueId value : wrt_) {
    const ValueId cotangent = sum(value);
    grads.push_back(cotangent != kNoId ? cotangent : zeros(value));
    is_used_.push_back(cotangent != kNoId);
  }
  return grads;
}

/// Marks the active values: those that depend on a wrt through differentiable ops on floating
/// values. A carry is active if its next value is, so a loop is visited again until nothing
/// changes.
void BackwardWalk::mark_active(OpId begin, OpId end) {
  const Program& program = builder_.program();
  for (OpId op = begin; op < end; ++op) {
    if (program.kind(op) == OpKind::loop) {
      const LoopRange& range = loops_[loops_.at(op)];
      for (bool changed = true; changed;) {
        changed = false;
        mark_active(op + 1, range.end);
        for (const OpId next : range.nexts) {
          const ValueId carry = program.op_operands(next)[1];
          if (!active_[program.result(next)] || active_[carry]) continue;
          active_[carry] = changed = true;
        }
      }
      op = range.end - 1;
    } else if (reaches_wrt(op)) {
      active_[program.result(op)] = true;
    }
  }
}

bool BackwardWalk::reaches_wrt(OpId op) const {
  const Program& program = builder_.program();
  const ValueId result = program.result(op);
  if (!has_gradient(program.kind(op))) return false;
  if (!is_floating(program.type(result).dtype)) return false;
  const auto operands = program.op_operands(op);
  return std::any_of(operands.begin(), operands.end(), [&](ValueId v) { return active_[v]; });
}

/// Visits the ops from the last to the first. A loop is visited as one unit, and so are the two
/// branches of a cond.
void BackwardWalk::visit_range(OpId begin, OpId end) {
  const std::uint32_t inside = frames_.empty() ? kNoId : frames_.back().loop;
  for (OpId op = end; op-- > begin;) {
    std::uint32_t loop = loops_.of_op(op);
    while (loop != inside && loop != kNoId && loops_[loop].outer != inside) {
      loop = loops_[loop].outer;
    }
    if (loop == inside) {
      visit(op);
    } else if (!loops_.is_branch(loop)) {
      visit_loop(loops_[loop]);
      op = loops_[loop].begin;
    } else {
      // If the cond has no merges, its second branch is still being recorded. Then the first branch
      // is skipped, because nothing outside of it can read its values yet.
      const LoopRange& range = loops_[loop];
      if (!range.nexts.empty()) visit_branches(loops_[range.other], range);
      op = range.nexts.empty() ? range.begin : loops_[range.other].begin;
    }
  }
}

void BackwardWalk::visit(OpId id) {
  const OpKind kind = builder_.program().kind(id);
  if (row(kind).gradient->how == Gradient::How::loop) return visit_border(id);
  if (!reaches_wrt(id)) return;
  const ValueId cotangent = sum(builder_.program().result(id));
  if (cotangent == kNoId) return;
  if (frames_.empty()) compute_again(id);
  copy_op(builder_.program(), id, op_);
  operands_ = op_.operands;
  for (ValueId& operand : op_.operands) operand = forward(operand);
  op_.result = forward(op_.result);
  builder_.set_loc(builder_.program().op_locs[id]);
  if (row(op_.kind).gradient->how == Gradient::How::target) return visit_custom(cotangent);
  // The last operand comes first, because sum() adds the addends in reverse order.
  for (std::size_t i = operands_.size(); i-- > 0;) {
    if (!active_[operands_[i]]) continue;
    add(operands_[i], operand_cotangent(i, cotangent));
  }
}

ValueId BackwardWalk::operand_cotangent(std::size_t index, ValueId cotangent) {
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

/// Returns the gradient of the op's decomposition, for ops without a gradient of their own.
ValueId BackwardWalk::by_decomposition(std::size_t index, ValueId cotangent) {
  // The operands are copied, so that grad() finds the cotangent of this operand alone, even if
  // another operand is equal.
  std::vector<ValueId> copies;
  for (const ValueId operand : op_.operands) copies.push_back(builder_.copy(operand));
  const ValueId result = decompose(builder_, op_.kind, copies, op_.attrs);
  const ValueId weighted = builder_.binary(OpKind::multiply, result, builder_.copy(cotangent));
  const DimList all = consecutive_dims(0, builder_.type(weighted).shape.size());
  const ValueId sum = builder_.reduce(ReduceKind::add, weighted, all);
  return grad(builder_, sum, std::array{copies[index]})[0];
}

void BackwardWalk::visit_custom(ValueId cotangent) {
  if (!custom_) fail(Errc::invalid_argument, "grad: a custom_call has no known gradient");
  const std::vector<ValueId> cotangents = custom_(op_, cotangent);
  for (std::size_t i = operands_.size(); i-- > 0;) {
    if (!active_[operands_[i]] || cotangents[i] == kNoId) continue;
    // An input is copied, because sum() needs the location of the op that makes the addend, and
    // inputs have no op.
    const bool is_input = builder_.program().defining_op(cotangents[i]) == kNoId;
    add(operands_[i], is_input ? builder_.copy(cotangents[i]) : cotangents[i]);
  }
}

void BackwardWalk::add(ValueId value, ValueId cotangent) {
  std::uint32_t* head = &last_addend_[value];
  if (!frames_.empty() && !is_in_frame(value)) {
    head = &frames_.back().outer.try_emplace(value, kNoId).first->second;
  }
  addends_.push_back({cotangent, *head});
  *head = static_cast<std::uint32_t>(addends_.size() - 1);
}

ValueId BackwardWalk::sum_list(std::uint32_t head) {
  if (head == kNoId) return kNoId;
  Addend& total = addends_[head];
  const Program& program = builder_.program();
  builder_.set_loc(program.op_locs[program.defining_op(total.cotangent)]);
  while (total.before != kNoId) {
    const Addend& next = addends_[total.before];
    total = {builder_.binary(OpKind::add, total.cotangent, next.cotangent), next.before};
  }
  return total.cotangent;
}

ValueId BackwardWalk::zeros(ValueId value) {
  builder_.set_loc("");
  return builder_.like(builder_.constant(0, builder_.type(value)), builder_.manual(value));
}

std::vector<ValueId> grad(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
                          std::span<const RematRegion> regions, const CustomVjpRule& custom,
                          std::vector<bool>* is_used) {
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
  BackwardWalk walk(builder, loss, wrt, regions, custom);
  std::vector<ValueId> grads = walk.run();
  if (is_used != nullptr) *is_used = walk.is_used();
  builder.set_loc(caller);
  return grads;
}

}  // namespace weft
