/// Provides the forward values that a backward walk reads: kept, computed again, or read from
/// stacks.

#include <algorithm>

#include "spmd/grad/backward_walk.hpp"

namespace weft {

/// Clones the ops of the region that contains op `id`, unless they are already cloned. Drops
/// regions that begin after `id`, because the backward walk has passed them.
void BackwardWalk::compute_again(OpId id) {
  while (!regions_.empty() && regions_.back().begin > id) regions_.pop_back();
  if (regions_.empty() || id >= regions_.back().end) return;
  const RematRegion region = std::move(regions_.back());
  regions_.pop_back();
  behind_barrier_.clear();
  const Program& program = builder_.program();
  // Barriers for outer operands come first, because ops after a cloned loop can't read a barrier in
  // the loop.
  for (OpId op = region.begin; op < region.end; ++op) {
    if (is_saved(region, op)) continue;
    builder_.set_loc(program.op_locs[op]);
    const std::vector<ValueId> operands(program.op_operands(op).begin(),
                                        program.op_operands(op).end());
    for (const ValueId operand : operands) {
      const OpId from = program.defining_op(operand);
      const bool is_cloned = from != kNoId && from >= region.begin && !is_saved(region, from);
      if (!is_cloned) behind_barrier(operand);
    }
  }
  for (OpId op = region.begin; op < region.end; ++op) {
    if (is_saved(region, op)) continue;
    ForwardOp original;
    copy_op(program, op, original);
    for (ValueId& operand : original.operands) {
      const auto hidden = behind_barrier_.find(operand);
      operand = hidden != behind_barrier_.end() ? hidden->second : again_[operand];
    }
    again_[original.result] =
        builder_.program().add_op(original.kind, original.operands, original.attrs,
                                  program.type(original.result), program.op_locs[op]);
  }
}

bool BackwardWalk::is_saved(const RematRegion& region, OpId op) const {
  const Program& program = builder_.program();
  const std::uint32_t loop = loops_.of_op(op);
  // A loop in the region is always computed again completely, so no value in the loop is saved.
  if (loop != kNoId && loops_[loop].begin >= region.begin) return false;
  return (region.save_dots && row(program.kind(op)).traits->product) ||
         std::ranges::binary_search(region.saved, program.result(op));
}

/// Passes a value from outside the region, or a saved value, through an optimization_barrier.
/// Otherwise canonicalize would merge the clone with the original.
void BackwardWalk::behind_barrier(ValueId value) {
  ValueId& hidden = behind_barrier_.try_emplace(value, kNoId).first->second;
  if (hidden == kNoId) hidden = builder_.optimization_barrier(value);
}

ValueId BackwardWalk::forward(ValueId value) {
  const std::uint32_t loop = loops_.of_value(value);
  const auto frame = std::ranges::find(frames_, loop, &Frame::loop);
  if (loop == kNoId || frame == frames_.end()) return again_[value];
  if (const auto made = frame->forward.find(value); made != frame->forward.end()) {
    return made->second;
  }
  WEFT_CHECK(loop == frames_.back().loop, value);  // begin_backward() handled outer values
  const ValueId made = forward_in_loop(value);
  frames_.back().forward[value] = made;
  return made;
}

ValueId BackwardWalk::forward_in_loop(ValueId value) {
  const Program& program = builder_.program();
  const Frame& frame = frames_.back();
  const OpId op = program.defining_op(value);
  const OpKind kind = program.kind(op);
  builder_.set_loc(program.op_locs[op]);
  if (op == loops_[frame.loop].begin) return frame.number;
  const auto stack = frame.stacks.find(value);
  if (kind == OpKind::carry || (stack != frame.stacks.end() && is_kept(op))) {
    if (stack == frame.stacks.end()) {
      fail(Errc::invalid_argument,
           "grad: the loop at {} can't store its carry {} for each iteration; the carry must have "
           "fewer than {} dims",
           program.loc(loops_[frame.loop].begin), program.type(value).to_string(), kDimCountMax);
    }
    return builder_.border(OpKind::item, {frame.number, forward(stack->second)});
  }
  ForwardOp original;
  copy_op(program, op, original);
  if (leaves_loop(kind)) {
    const LoopRange& range = loops_[loops_.of_op(op)];
    clone_ops(kind == OpKind::merge ? loops_[range.other].begin : range.begin, range.end);
    return frames_.back().forward.at(value);
  }
  for (ValueId& operand : original.operands) operand = forward(operand);
  return builder_.program().add_op(original.kind, original.operands, original.attrs,
                                   program.type(value), program.op_locs[op]);
}

void BackwardWalk::clone_ops(OpId begin, OpId end) {
  for (const ValueId value : values_read_by(begin, end)) forward(value);
  std::unordered_map<ValueId, ValueId> made;
  const Program& program = builder_.program();
  for (OpId op = begin; op < end; ++op) {
    ForwardOp original;
    copy_op(program, op, original);
    for (ValueId& operand : original.operands) {
      const auto inner = made.find(operand);
      operand = inner != made.end() ? inner->second : forward(operand);
    }
    made[original.result] =
        builder_.program().add_op(original.kind, original.operands, original.attrs,
                                  program.type(original.result), program.op_locs[op]);
    const bool leaves = loops_.of_value(original.result) == frames_.back().loop;
    if (leaves) frames_.back().forward[original.result] = made[original.result];
  }
}

/// Returns whether the op's result is read from its stack. It isn't if the op is in a region within
/// the loop that is computed again.
bool BackwardWalk::is_kept(OpId op) const {
  const auto behind = std::ranges::upper_bound(all_regions_, op, {}, &RematRegion::begin);
  if (behind == all_regions_.begin()) return true;
  const RematRegion& region = *std::prev(behind);
  if (op >= region.end || region.begin <= loops_[frames_.back().loop].begin) return true;
  return is_saved(region, op);
}

}  // namespace weft
