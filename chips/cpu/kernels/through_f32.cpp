#include "chips/cpu/kernels/through_f32.hpp"

#include <vector>

#include "chips/cpu/kernels/elementwise.hpp"

namespace weft::kernels {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

struct Conversion {
  std::size_t operand;
  Kernel kernel;
  std::size_t at;  ///< offset in the scratch memory
};

}  // namespace

Kernel through_f32(const Program& program, OpId op, const Kernel& inner) {
  if (!inner.run) return {};
  std::size_t at = aligned(inner.scratch_bytes);
  const auto take = [&](const TensorType& type) {
    const std::size_t place = at;
    at += aligned(static_cast<std::size_t>(TensorType{DType::f32, type.shape}.bytes()));
    return place;
  };
  std::vector<Conversion> conversions;
  const auto operands = program.op_operands(op);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const TensorType& type = program.type(operands[i]);
    if (!is_half(type.dtype)) continue;
    conversions.push_back({i, convert(type, DType::f32), take(type)});
  }
  const TensorType& result = program.type(program.result(op));
  const std::size_t result_at = take(result);
  const Kernel round = convert({DType::f32, result.shape}, result.dtype);
  return {
      [=](const KernelArgs& args) {
        KernelArgs wide = args;
        for (const Conversion& conversion : conversions) {
          std::byte* place = args.scratch + conversion.at;
          conversion.kernel.run({.operands = {args.operands[conversion.operand]}, .result = place});
          wide.operands[conversion.operand] = place;
        }
        wide.result = args.scratch + result_at;
        inner.run(wide);
        round.run({.operands = {wide.result}, .result = args.result});
      },
      at};
}

}  // namespace weft::kernels
