#include <weft/spmd/passes/lifetime.hpp>

namespace weft {

std::vector<Lifetime> lifetimes_of(const Program& program) {
  std::vector<Lifetime> lifetimes(program.num_values());
  for (OpId op = 0; op < program.num_ops(); ++op) {
    for (const ValueId operand : program.op_operands(op)) lifetimes[operand].last = op;
    lifetimes[program.result(op)] = {op, op};
  }
  return lifetimes;
}

std::uint64_t slot_bytes(const TensorType& type) {
  const auto bytes = static_cast<std::uint64_t>(type.bytes());
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace weft
