/// Implements the backward walk through loops. The gradient of a loop is a loop in the other
/// direction.

#include <algorithm>

#include "spmd/grad/backward_walk.hpp"

namespace weft {
namespace {

bool is_floating_value(const Program& program, ValueId value) {
  return is_floating(program.type(value).dtype);
}

}  // namespace

bool BackwardWalk::is_in_frame(ValueId value) const {
  return loops_.contains(frames_.back().loop, loops_.of_value(value));
}

std::vector<ValueId> BackwardWalk::values_read_by(OpId begin, OpId end) const {
  const Program& program = builder_.program();
  std::vector<ValueId> values;
  for (OpId op = begin; op < end; ++op) {
    for (const ValueId operand : program.op_operands(op)) {
      const OpId maker = program.defining_op(operand);
      if (maker == kNoId || maker < begin) values.push_back(operand);
    }
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void BackwardWalk::visit_loop(const LoopRange& range) {
  const Program& program = builder_.program();
  const std::uint32_t loop = loops_.at(range.begin);
  std::map<OpId, ValueId> cotangents;  // cotangents of values that leave the loop
  for (OpId op = range.begin; op < range.end; ++op) {
    if (!leaves_loop(program.kind(op)) || loops_.of_op(op) != loop) continue;
    if (const ValueId cotangent = sum(program.result(op)); cotangent != kNoId) {
      cotangents[op] = cotangent;
    }
  }
  if (cotangents.empty()) return;
  if (range.test != kNoId) {
    fail(Errc::invalid_argument,
         "grad: the loop at {} has no gradient, because its length isn't known before it ends: use "
         "scan() with a cond() or where() in it, or apply stop_gradient() to the initial carry",
         program.loc(range.begin));
  }
  if (frames_.empty()) compute_again(range.end - 1);
  frames_.push_back(begin_backward(range, cotangents));
  visit_range(range.begin + 1, range.end);
  end_backward(range);
}

BackwardWalk::Frame BackwardWalk::begin_backward(const LoopRange& range,
                                                 const std::map<OpId, ValueId>& cotangents) {
  const Program& program = builder_.program();
  Frame frame{.loop = loops_.at(range.begin)};
  // Forward values from outside are provided before the loop, because their stacks can be read only
  // in surrounding loops.
  const std::vector<ValueId> read = values_read_by(range.begin, range.end);
  for (const ValueId value : read) forward(value);
  for (OpId op = range.begin; op < range.end; ++op) {
    if (program.kind(op) != OpKind::stack || loops_.of_op(op) != frame.loop) continue;
    frame.stacks.try_emplace(program.op_operands(op)[1], program.result(op));
    forward(program.result(op));
    if (const auto cotangent = cotangents.find(op); cotangent != cotangents.end()) {
      frame.stack_cotangents[op] = cotangent->second;
    }
  }
  const auto first = [&](OpId next) {
    const auto cotangent = cotangents.find(next);
    if (cotangent == cotangents.end()) return zeros(program.result(next));
    return builder_.like(cotangent->second, builder_.manual(program.result(next)));
  };
  for (const OpId next : range.nexts) {
    if (active_[program.op_operands(next)[1]]) frame.carries[next] = first(next);
  }
  for (const ValueId value : read) {
    if (active_[value] && is_floating_value(program, value))
      frame.accumulators[value] = zeros(value);
  }
  builder_.set_loc(program.op_locs[range.begin]);
  frame.number =
      builder_.loop(length_of_loop(program, range.begin), !is_reversed_loop(program, range.begin));
  for (auto* begins : {&frame.carries, &frame.accumulators}) {
    for (auto& [key, value] : *begins) {
      value = builder_.border(OpKind::carry, {frame.number, value});
    }
  }
  return frame;
}

/// Visits an op at the loop's border. The cotangent of a carry's next value is a carry of the
/// backward loop. The cotangent of a stacked value is an item of the stack's cotangent. An item's
/// cotangents are stacked.
void BackwardWalk::visit_border(OpId id) {
  const Program& program = builder_.program();
  Frame& frame = frames_.back();
  const OpKind kind = program.kind(id);
  const std::vector<ValueId> operands(program.op_operands(id).begin(),
                                      program.op_operands(id).end());
  builder_.set_loc(program.op_locs[id]);
  if (kind == OpKind::next) {
    const auto carried = frame.carries.find(id);
    if (carried != frame.carries.end() && active_[operands[2]]) add(operands[2], carried->second);
  } else if (kind == OpKind::stack) {
    const auto whole = frame.stack_cotangents.find(id);
    if (whole == frame.stack_cotangents.end() || !active_[operands[1]]) return;
    add(operands[1], builder_.border(OpKind::item, {frame.number, whole->second}));
  } else if (kind == OpKind::item && active_[operands[1]]) {
    const ValueId cotangent = sum(program.result(id));
    if (cotangent == kNoId) return;
    if (is_in_frame(operands[1])) {
      fail(Errc::invalid_argument, "grad: the items at {} are computed in the loop that reads them",
           program.loc(id));
    }
    frame.items.emplace_back(operands[1],
                             builder_.border(OpKind::stack, {frame.number, cotangent}));
  }
}

void BackwardWalk::end_backward(const LoopRange& range) {
  const Program& program = builder_.program();
  std::vector<std::pair<ValueId, ValueId>> results;  // pairs of an outer value and its cotangent
  std::map<OpId, ValueId> carried;
  for (const auto& [next, carry] : frames_.back().carries) {
    const ValueId value = program.op_operands(next)[1];
    const ValueId cotangent = sum(value);
    carried[next] = cotangent != kNoId ? cotangent : zeros(value);
  }
  std::map<ValueId, ValueId> accumulated;
  for (const auto& [value, accumulator] : frames_.back().accumulators) {
    const auto head = frames_.back().outer.find(value);
    if (head == frames_.back().outer.end()) continue;
    const ValueId cotangent = sum_list(head->second);
    accumulated[value] = builder_.binary(OpKind::add, accumulator, cotangent);
  }
  builder_.set_loc(program.op_locs[range.begin]);
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  stack_residuals(builder_, frame.number);
  for (const auto& [next, carry] : frame.carries) {
    const ValueId last = builder_.border(OpKind::next, {frame.number, carry, carried[next]});
    const OpId begin = program.defining_op(program.op_operands(next)[1]);
    results.emplace_back(program.op_operands(begin)[1], last);
  }
  for (const auto& [value, accumulator] : frame.accumulators) {
    const auto total = accumulated.find(value);
    const bool has = total != accumulated.end();
    const ValueId last = builder_.border(
        OpKind::next, {frame.number, accumulator, has ? total->second : accumulator});
    if (has) results.emplace_back(value, last);
  }
  results.insert(results.end(), frame.items.begin(), frame.items.end());
  for (const auto& [value, cotangent] : results) {
    if (active_[value]) add(value, cotangent);
  }
}

void stack_residuals(Builder& builder, ValueId loop) {
  const Program& program = builder.program();
  const Loops loops(program);
  const OpId begin = program.defining_op(loop);
  const OpId end = program.num_ops();
  std::vector<ValueId> values;
  std::vector<ValueId> stacked;
  for (OpId op = begin + 1; op < end; ++op) {
    const ValueId value = program.result(op);
    const OpKind kind = program.kind(op);
    if (kind == OpKind::stack && program.op_operands(op)[0] == loop) {
      stacked.push_back(program.op_operands(op)[1]);
      continue;
    }
    const std::uint32_t inner = loops.of_value(value);
    if (inner != kNoId && loops[inner].begin > begin) continue;
    const bool is_made_again =
        row(kind).traits->on_demand || program.is_fill(op) || kind == OpKind::item;
    const bool is_kept = is_floating_value(program, value) || kind == OpKind::carry;
    if (is_kept && !is_made_again && program.shape(value).size() < kDimCountMax) {
      values.push_back(value);
    }
  }
  std::ranges::sort(stacked);
  for (const ValueId value : values) {
    if (std::ranges::binary_search(stacked, value)) continue;
    builder.set_loc(program.op_locs[program.defining_op(value)]);
    builder.border(OpKind::stack, {loop, value});
  }
}

}  // namespace weft
