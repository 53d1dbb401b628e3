#include <weft/actors/device/kernels/custom_call.hpp>

#include <weft/actors/device/kernels/prepares.hpp>
#include <weft/spmd/program/custom_call.hpp>

namespace weft::kernels {

static_assert(kCustomOperandCountMax <= kOperandCountMax);

Kernel custom_call(const Program& program, OpId op) {
  return {[call = BoundCustomCall(program, op)](const KernelArgs& args) {
    call.run(args.operands, args.result);
  }};
}

constexpr Prepare prepares::custom_call = prepare_by<kernels::custom_call>;

}  // namespace weft::kernels
