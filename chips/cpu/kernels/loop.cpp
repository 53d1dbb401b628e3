/// Kernels of the ops that begin and end loops. They copy values; the executor counts the
/// iterations.

#include <algorithm>

#include "chips/cpu/loops/element.hpp"
#include "chips/cpu/loops/prepares.hpp"

namespace weft::kernels {
namespace {

Kernel copy_operand(const Program& program, OpId op, std::size_t operand) {
  return {[operand, bytes = program.type(program.result(op)).bytes()](const KernelArgs& args) {
    if (args.operands[operand] != args.result) {
      std::copy_n(args.operands[operand], bytes, args.result);
    }
  }};
}

/// Makes the kernel of the op `loop`, which has nothing to compute.
Kernel loop(const Program&, OpId) {
  return {[](const KernelArgs&) {}};
}

Kernel carry(const Program& program, OpId op) { return copy_operand(program, op, 1); }
Kernel next(const Program& program, OpId op) { return copy_operand(program, op, 2); }

Kernel item(const Program& program, OpId op) {
  return {[bytes = program.type(program.result(op)).bytes()](const KernelArgs& args) {
    const std::int64_t number = *as<std::int32_t>(args.operands[0]);
    std::copy_n(args.operands[1] + number * bytes, bytes, args.result);
  }};
}

Kernel stack(const Program& program, OpId op) {
  const std::int64_t bytes = program.type(program.op_operands(op)[1]).bytes();
  return {[bytes](const KernelArgs& args) {
    const std::int64_t number = *as<std::int32_t>(args.operands[0]);
    std::copy_n(args.operands[1], bytes, args.result + number * bytes);
  }};
}

}  // namespace

constexpr Prepare prepares::loop = prepare_by<kernels::loop>;
constexpr Prepare prepares::carry = prepare_by<kernels::carry>;
constexpr Prepare prepares::item = prepare_by<kernels::item>;
constexpr Prepare prepares::stack = prepare_by<kernels::stack>;
constexpr Prepare prepares::next = prepare_by<kernels::next>;

}  // namespace weft::kernels
