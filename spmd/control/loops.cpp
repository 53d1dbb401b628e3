#include "spmd/control/loops.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

namespace weft {

Loops::Loops(const Program& program) : program_(program) {
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (begins_range(program.kind(op))) ranges_.push_back({.begin = op, .end = op + 1});
  }
  if (ranges_.empty()) return;
  for (OpId op = 0; op < program.num_ops(); ++op) close(op);
  of_op_.assign(program.num_ops(), kNoId);
  std::uint32_t inner = kNoId;
  std::uint32_t following = 0;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    while (inner != kNoId && ranges_[inner].end <= op) inner = ranges_[inner].outer;
    if (following < ranges_.size() && ranges_[following].begin == op) {
      ranges_[following].outer = inner;
      ranges_[following].depth = depth_of(inner) + 1;
      inner = following++;
    }
    of_op_[op] = inner;
  }
}

/// Records a border op in the loop or branch to which it belongs.
void Loops::close(OpId op) {
  const OpKind kind = program_.kind(op);
  const bool is_of_cond = is_cond_border(kind);
  if ((!is_of_cond && !is_border(kind)) || program_.op_operands(op).empty()) return;
  const OpId begin = program_.defining_op(program_.op_operands(op)[0]);
  if (begin == kNoId || program_.kind(begin) != (is_of_cond ? OpKind::cond : OpKind::loop)) return;
  std::uint32_t number = at(begin);
  if (kind == OpKind::otherwise) {
    ranges_[number].end = std::max(ranges_[number].end, op);
    ranges_[number].other = at(op);
    ranges_[at(op)].other = number;
    return;
  }
  if (kind == OpKind::merge) number = ranges_[number].other;
  if (number == kNoId) return;
  LoopRange& range = ranges_[number];
  range.end = std::max(range.end, op + 1);
  if (kind == OpKind::carry) range.carries.push_back(op);
  if (kind == OpKind::next || kind == OpKind::merge) range.nexts.push_back(op);
  if (kind == OpKind::test) range.test = op;
}

std::uint32_t Loops::of_value(ValueId value) const {
  const OpId op = program_.defining_op(value);
  if (ranges_.empty() || op == kNoId) return kNoId;
  const std::uint32_t loop = of_op_[op];
  return loop != kNoId && leaves_loop(program_.kind(op)) ? ranges_[loop].outer : loop;
}

bool Loops::contains(std::uint32_t outer, std::uint32_t inner) const {
  if (outer == kNoId) return true;
  while (inner != kNoId && inner != outer) inner = ranges_[inner].outer;
  return inner == outer;
}

std::uint32_t Loops::at(OpId op) const {
  const auto found = std::ranges::lower_bound(ranges_, op, {}, &LoopRange::begin);
  WEFT_CHECK(found != ranges_.end() && found->begin == op, op);
  return static_cast<std::uint32_t>(found - ranges_.begin());
}

bool Loops::always_runs(OpId op) const {
  for (std::uint32_t range = of_op(op); range != kNoId; range = ranges_[range].outer) {
    if (is_branch(range) || ranges_[range].test != kNoId) return false;
  }
  return true;
}

}  // namespace weft
