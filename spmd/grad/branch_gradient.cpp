/// Implements the backward walk through branches. The gradient of a cond is a cond with the same
/// predicate, whose branches compute the forward values again.

#include <array>
#include <utility>

#include "spmd/grad/backward_walk.hpp"

namespace weft {

void BackwardWalk::visit_branches(const LoopRange& first, const LoopRange& second) {
  const Program& program = builder_.program();
  bool is_reached = false;
  for (const OpId merge : second.nexts) is_reached |= sum(program.result(merge)) != kNoId;
  if (!is_reached) return;
  if (frames_.empty()) compute_again(second.end - 1);
  std::vector<ValueId> wanted;
  for (const ValueId value : values_read_by(first.begin, second.end)) {
    forward(value);  // stacks of the surrounding loops can be read only here
    if (active_[value] && is_floating(program.type(value).dtype)) wanted.push_back(value);
  }
  const ValueId predicate = forward(program.op_operands(first.begin)[0]);
  builder_.set_loc(program.op_locs[first.begin]);
  const ValueId cond = builder_.cond(predicate);
  std::array<std::vector<Cotangent>, 2> made;
  for (std::size_t side = 0; side < 2; ++side) {
    const LoopRange& branch = side == 0 ? first : second;
    builder_.set_loc(program.op_locs[branch.begin]);
    const ValueId number = side == 0 ? cond : builder_.border(OpKind::otherwise, {cond});
    frames_.push_back({.loop = loops_.at(branch.begin), .number = number});
    made[side] = branch_cotangents(branch, second.nexts, wanted);
    frames_.pop_back();
  }
  builder_.set_loc(program.op_locs[first.begin]);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [a, b] = std::pair(made[0][i], made[1][i]);
    if (!a.is_zero || !b.is_zero) {
      add(wanted[i], builder_.border(OpKind::merge, {cond, a.value, b.value}));
    }
  }
}

std::vector<BackwardWalk::Cotangent> BackwardWalk::branch_cotangents(
    const LoopRange& branch, std::span<const OpId> merges, std::span<const ValueId> values) {
  const Program& program = builder_.program();
  const bool is_first = program.kind(branch.begin) == OpKind::cond;
  for (const OpId merge : merges) {
    const ValueId result = program.op_operands(merge)[is_first ? 1 : 2];
    const ValueId cotangent = sum(program.result(merge));
    if (cotangent != kNoId && active_[result]) add(result, cotangent);
  }
  visit_range(branch.begin + 1, branch.body_end());
  std::vector<Cotangent> cotangents;
  for (const ValueId value : values) {
    const auto head = frames_.back().outer.find(value);
    const bool is_zero = head == frames_.back().outer.end();
    const ValueId made = is_zero ? zeros(value) : sum_list(head->second);
    cotangents.push_back({builder_.like(made, builder_.manual(value)), is_zero});
  }
  return cotangents;
}

}  // namespace weft
