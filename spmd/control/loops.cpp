#include "spmd/control/loops.hpp"

#include <algorithm>

#include <weft/error.hpp>

namespace weft {

Loops::Loops(const Program& program) : program_(program) {
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) == OpKind::loop) ranges_.push_back({.begin = op, .end = op + 1});
  }
  if (ranges_.empty()) return;
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const OpKind kind = program.kind(op);
    if (!is_border(kind) || program.op_operands(op).empty()) continue;
    const OpId begin = program.defining_op(program.op_operands(op)[0]);
    if (begin == kNoId || program.kind(begin) != OpKind::loop) continue;
    LoopRange& range = ranges_[at(begin)];
    range.end = std::max(range.end, op + 1);
    if (kind == OpKind::carry) range.carries.push_back(op);
    if (kind == OpKind::next) range.nexts.push_back(op);
  }
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

}  // namespace weft
