#include "chips/cpu/loops/prepares.hpp"
#include "spmd/program/custom_function.hpp"

namespace weft::kernels {
namespace {

Kernel custom_call(const Program& program, OpId op) {
  return {[call = BoundCustomCall(program, op)](const KernelArgs& args) {
    call.run(args.operands, args.result);
  }};
}

}  // namespace

constexpr Prepare prepares::custom_call = prepare_by<kernels::custom_call>;

}  // namespace weft::kernels
