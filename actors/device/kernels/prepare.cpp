#include <weft/actors/device/kernels/assemble.hpp>
#include <weft/actors/device/kernels/attention.hpp>
#include <weft/actors/device/kernels/convolution.hpp>
#include <weft/actors/device/kernels/custom_call.hpp>
#include <weft/actors/device/kernels/dot_general.hpp>
#include <weft/actors/device/kernels/elementwise.hpp>
#include <weft/actors/device/kernels/indexing.hpp>
#include <weft/actors/device/kernels/leaf.hpp>
#include <weft/actors/device/kernels/reduce.hpp>
#include <weft/actors/device/kernels/reduce_window.hpp>
#include <weft/actors/device/kernels/rng.hpp>
#include <weft/actors/device/kernels/row.hpp>
#include <weft/actors/device/kernels/strided.hpp>

namespace weft::kernels {
namespace {

Kernel choose(const Program& program, OpId op, const ChipContext& chip) {
  const OpKind kind = program.kind(op);
  if (is_elementwise(kind)) return elementwise(program, op);
  if (program.is_fill(op)) return fill(program, op);
  switch (kind) {
    case OpKind::constant:
    case OpKind::iota: return leaf(program, op, chip);
    case OpKind::dot_general: return dot_general(program, op, chip);
    case OpKind::reduce: return reduce(program, op);
    case OpKind::convolution: return convolution(program, op, chip);
    case OpKind::reduce_window: return reduce_window(program, op);
    case OpKind::select_and_scatter: return select_and_scatter(program, op);
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::broadcast_in_dim:
    case OpKind::slice:
    case OpKind::reverse:
    case OpKind::sharding_constraint:
    case OpKind::copy:
    case OpKind::optimization_barrier:
    case OpKind::all_slice: return move_elements(program, op, chip);
    case OpKind::pad:
    case OpKind::concatenate: return assemble(program, op);
    case OpKind::check_index:
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::dynamic_slice:
    case OpKind::dynamic_update_slice: return indexing(program, op, chip);
    case OpKind::rng_bit_generator: return rng_bit_generator(program, op, chip);
    case OpKind::softmax:
    case OpKind::softmax_grad:
    case OpKind::log_softmax:
    case OpKind::log_softmax_grad:
    case OpKind::normalize:
    case OpKind::normalize_grad: return row_op(program, op);
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_grad: return cross_entropy(program, op);
    case OpKind::custom_call: return custom_call(program, op);
    case OpKind::attention:
    case OpKind::attention_grad: return attention(program, op, chip);
    default: return {};
  }
}

}  // namespace

Kernel prepare(const Program& program, OpId op, const ChipContext& chip) {
  Kernel kernel = choose(program, op, chip);
  if (kernel.run) return kernel;
  const auto operands = program.op_operands(op);
  const TensorType& type = program.type(operands.empty() ? program.result(op) : operands[0]);
  const std::string& loc = program.loc(op);
  fail(Errc::unavailable, "{} of {}{}{} has no kernel on this device; convert the operands to f32",
       to_string(program.kind(op)), type.to_string(), loc.empty() ? "" : " at ", loc);
}

}  // namespace weft::kernels
