#include "spmd/control/loop_carries.hpp"

#include <algorithm>

namespace weft {
namespace {

bool is_zero_constant(const Program& program, ValueId value) {
  OpId op = program.defining_op(value);
  while (op != kNoId && program.kind(op) == OpKind::enter) {
    op = program.defining_op(program.op_operands(op)[0]);
  }
  if (op == kNoId || program.kind(op) != OpKind::constant) return false;
  const auto attrs = program.op_attrs(op);
  const auto bytes =
      std::span(program.const_pool)
          .subspan(static_cast<std::size_t>(attrs[0]), static_cast<std::size_t>(attrs[1]));
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

std::vector<Accumulation> accumulations(const Program& program, const LoopRange& range,
                                        std::span<const std::uint32_t> use_count) {
  std::vector<Accumulation> sums;
  for (const OpId next : range.nexts) {
    const ValueId carry = program.op_operands(next)[1];
    const ValueId value = program.op_operands(next)[2];
    const ValueId first = program.op_operands(program.defining_op(carry))[1];
    const OpId sum = program.defining_op(value);
    if (sum == kNoId || program.kind(sum) != OpKind::add) continue;
    // The carry must have no other readers than the addition and its own `next`.
    if (use_count[carry] != 2 || use_count[value] != 1) continue;
    if (!is_zero_constant(program, first)) continue;
    const auto added = program.op_operands(sum);
    if (added[0] == carry) sums.push_back({sum, added[1]});
    if (added[1] == carry) sums.push_back({sum, added[0]});
  }
  return sums;
}

}  // namespace weft
