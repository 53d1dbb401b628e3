#include <array>

#include "chips/cpu/kernels/leaf.hpp"
#include "chips/cpu/loops/prepares.hpp"

namespace weft::kernels {
namespace {

constexpr std::array<const Prepare*, kOpNumberMax> kPrepares = [] {
  std::array<const Prepare*, kOpNumberMax> table{};
#define WEFT_PREPARE(name, number) table[number] = &prepares::name;
  WEFT_OPS(WEFT_PREPARE)
#undef WEFT_PREPARE
  return table;
}();

/// Makes no kernel. This is for collectives, which the Communicator runs.
Kernel none(const Program&, OpId) { return {}; }

}  // namespace

constexpr Prepare prepares::all_reduce = prepare_by<none>;
constexpr Prepare prepares::all_gather = prepare_by<none>;
constexpr Prepare prepares::reduce_scatter = prepare_by<none>;
constexpr Prepare prepares::all_to_all = prepare_by<none>;
constexpr Prepare prepares::collective_permute = prepare_by<none>;
constexpr Prepare prepares::ppermute = prepare_by<none>;
// No chip runs these ops, because they exist only in programs before partitioning.
constexpr Prepare prepares::enter = prepare_by<none>;
constexpr Prepare prepares::leave = prepare_by<none>;

Kernel prepare(const Program& program, OpId op, const ChipContext& chip) {
  const Prepare prepare_op = *kPrepares[static_cast<std::size_t>(program.kind(op))];
  Kernel kernel = program.is_fill(op) ? fill(program, op) : prepare_op(program, op, chip);
  if (kernel.run) return kernel;
  const auto operands = program.op_operands(op);
  const TensorType& type = program.type(operands.empty() ? program.result(op) : operands[0]);
  const std::string& loc = program.loc(op);
  fail(Errc::unavailable, "{} of {}{}{} has no kernel on this device; convert the operands to f32",
       to_string(program.kind(op)), type.to_string(), loc.empty() ? "" : " at ", loc);
}

}  // namespace weft::kernels
