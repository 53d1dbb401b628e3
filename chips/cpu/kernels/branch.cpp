/// Kernels of the ops that begin and end branches, and of a loop's test. By the results of `cond`,
/// `otherwise` and `test`, the executor decides with which step it continues.

#include <algorithm>

#include "chips/cpu/loops/prepares.hpp"

namespace weft::kernels {
namespace {

Kernel copy_predicate(std::size_t operand) {
  return {[operand](const KernelArgs& args) { *args.result = *args.operands[operand]; }};
}

Kernel cond(const Program&, OpId) { return copy_predicate(0); }
Kernel test(const Program&, OpId) { return copy_predicate(1); }

Kernel otherwise(const Program&, OpId) {
  return {[](const KernelArgs& args) {
    *args.result = std::byte{*args.operands[0] == std::byte{0} ? std::uint8_t{1} : std::uint8_t{0}};
  }};
}

Kernel merge(const Program& program, OpId op) {
  return {[bytes = program.type(program.result(op)).bytes()](const KernelArgs& args) {
    const std::byte* from = args.operands[*args.operands[0] != std::byte{0} ? 1 : 2];
    if (from != args.result) std::copy_n(from, bytes, args.result);
  }};
}

}  // namespace

constexpr Prepare prepares::test = prepare_by<kernels::test>;
constexpr Prepare prepares::cond = prepare_by<kernels::cond>;
constexpr Prepare prepares::otherwise = prepare_by<kernels::otherwise>;
constexpr Prepare prepares::merge = prepare_by<kernels::merge>;

}  // namespace weft::kernels
